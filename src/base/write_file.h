// SPDX-License-Identifier: MIT
// Writes a file either completely or not at all.
#pragma once

#include <string>
#include <string_view>

namespace snapkv {

/// Writes `bytes` to the file `path`, replacing an old one. They go to a new file next to it, which
/// is renamed when all of it is on the disk, so that a failure leaves the old file, or none. If
/// `path` is not a regular file (a pipe, a device), it is written directly. Throws Error{kRuntime}
/// naming `path`.
void write_file(const std::string& path, std::string_view bytes);

}  // namespace snapkv
