// SPDX-License-Identifier: MIT
// How much memory this process may still take: the machine's, or less where a control group (of a
// container, a service, a batch job) has a limit. Used by engine/memory_plan.cpp.
#pragma once

#include <cstddef>
#include <string>

namespace snapkv {

/// Bytes: the least of what the system calls available (MemAvailable) and what is left of the limit
/// of the process's control group and of every group around it, in version 1 or 2. Cached pages of
/// files do not count as used, since the system drops them where memory is needed, as they do not
/// in MemAvailable; 2 MiB and 1/64 of a group's limit do. The largest size_t where the system tells
/// nothing. `root` is put before the names of the system's files, for tests.
size_t available_memory(const std::string& root = "");

}  // namespace snapkv
