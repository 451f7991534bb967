// SPDX-License-Identifier: MIT
// How much memory this process may still use: the machine's, or less if a control group (of a
// container, a service, a batch job) has a limit.
#pragma once

#include <cstddef>
#include <string>

namespace snapkv {

/// Bytes: the least of what the system reports as available (MemAvailable) and what remains of the
/// limits of the process's control group and of every group around it, in version 1 or 2. As in
/// MemAvailable, cached pages of files do not count as used, since the system drops them when
/// memory is needed; 2 MiB and 1/64 of a group's limit do. The largest size_t if the system reports
/// nothing. `root` is put before the names of the system's files, for tests.
size_t available_memory(const std::string& root = "");

}  // namespace snapkv
