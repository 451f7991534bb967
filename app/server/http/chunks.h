// SPDX-License-Identifier: MIT
// Reads a body in chunks (RFC 9112, 7.1). httplib's reader accepts lines of any length between
// chunks, and refuses trailers.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>

namespace snapkv::server {

/// Reads chunks to the end of the body. Skips extensions and trailers, up to 16 KiB of non-data in
/// one chunk and at the end. `read` returns as ::read() does; if `receive` returns false, reading
/// stops. Returns false if `receive` stopped it, the body breaks off, or it is not in chunks.
bool read_chunks(const std::function<ssize_t(char*, size_t)>& read,
                 const std::function<bool(const char*, size_t)>& receive);

}  // namespace snapkv::server
