// SPDX-License-Identifier: MIT
// Limits that Linux control groups, versions 1 and 2, set for this process: those of a container, a
// service or a batch job.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace snapkv {

/// A group that limits the process. The two versions have the same information in files with
/// different names.
struct ControlGroup {
  std::string folder;
  bool version_2 = false;

  /// The content of a file in the group's folder; empty if there is none.
  std::string read(const char* name) const;
};

/// The groups that limit the resource of `controller` ("memory", "cpu"): the process's own and
/// those around it, as far as they can be seen, outermost first. `root` is put before the names of
/// the system's files, for tests.
std::vector<ControlGroup> control_groups(std::string_view controller, const std::string& root = "");

/// Processor time that the process's groups grant it, as a number of processors, rounded up;
/// nothing if there is no limit.
std::optional<int> processor_quota(const std::string& root = "");

/// The content of a small file; empty if there is none. Running out of memory throws; getline() and
/// >> would treat it as the end of the file.
std::string read_small_file(const std::string& path);

/// The parts between separators, without empty ones.
std::vector<std::string_view> split_text(std::string_view text, char separator);

}  // namespace snapkv
