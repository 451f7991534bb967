// SPDX-License-Identifier: MIT
// A body in chunks (RFC 9112, 7.1). httplib's reader takes lines of any length between them, and
// refuses trailers. Used by read_body().
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>

namespace snapkv::server {

/// Reads chunks to the end of the body. Extensions and trailers are passed over, up to 16 KiB of
/// all that is no data in one chunk and the end. `read` returns as ::read() does; `receive` false
/// stops. False where `receive` stopped, the body breaks off, or what comes is not in chunks.
bool read_chunks(const std::function<ssize_t(char*, size_t)>& read,
                 const std::function<bool(const char*, size_t)>& receive);

}  // namespace snapkv::server
