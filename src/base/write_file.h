// SPDX-License-Identifier: MIT
// A file that is written whole or not at all. Used for pages and for JSON data that programs write.
#pragma once

#include <string>
#include <string_view>

namespace snapkv {

/// Writes `bytes` as the file `path`, over what was there: into a new file beside it that takes its
/// name when all of it is on the disk, so that a failure leaves the old file, or none. What is no
/// regular file (a pipe, a device) is written to directly. Throws Error{kRuntime} naming `path`.
void write_file(const std::string& path, std::string_view bytes);

}  // namespace snapkv
