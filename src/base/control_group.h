// SPDX-License-Identifier: MIT
// Limits that Linux control groups set for this process: those of a container, a service or a batch
// job. Versions 1 and 2. Used by available_memory.cpp and processor_quota().
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace snapkv {

/// A group that limits the process. The two versions say the same in files of different names.
struct ControlGroup {
  std::string folder;
  bool version_2 = false;

  /// A whole file of the group's folder; empty where there is none.
  std::string read(const char* name) const;
};

/// The groups that limit what `controller` ("memory", "cpu") counts: the process's own and those
/// around it, as far as they can be seen, outermost first. `root` is put before the names of the
/// system's files, for tests.
std::vector<ControlGroup> control_groups(std::string_view controller, const std::string& root = "");

/// Processors' worth of time that the process's groups grant it, rounded up; nothing where there is
/// no limit.
std::optional<int> processor_quota(const std::string& root = "");

/// All of a small file; empty where there is none. Memory that is refused is an exception, which
/// getline() and >> would take for the file's end.
std::string read_small_file(const std::string& path);

/// What stands between separators; empty parts are left out.
std::vector<std::string_view> split_text(std::string_view text, char separator);

}  // namespace snapkv
