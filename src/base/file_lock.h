// SPDX-License-Identifier: MIT
// One process at a time for a file that is written: an advisory lock of the whole file (flock),
// which the system gives back when the descriptor is closed or its process ends, however it ends.
// Used by eval/common/append_file.cpp.
#pragma once

#include <string>

namespace snapkv {

/// Locks the open file, or returns who has it: "process 1234", "another process" where the system
/// does not tell. Empty: locked. File systems without locks count as locked.
std::string lock_file(int fd);

}  // namespace snapkv
