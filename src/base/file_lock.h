// SPDX-License-Identifier: MIT
// Lets one process at a time write a file: an advisory lock of the whole file (flock), which the
// system releases when the descriptor is closed or its process ends, however it ends.
#pragma once

#include <string>

namespace snapkv {

/// Locks the open file and returns an empty string, or returns the holder: "process 1234", or
/// "another process" if the system does not say. On file systems without locks it always succeeds.
std::string lock_file(int fd);

}  // namespace snapkv
