// SPDX-License-Identifier: MIT
// proc(5), cgroups(7) and the kernel's cgroup-v2.rst and cgroup-v1 describe the files.
#include "base/control_group.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/parse_number.h"

namespace snapkv {
namespace {

/// Where a hierarchy of groups is mounted.
struct Mount {
  std::string group;   ///< the mounted group: "/", or a container's
  std::string folder;  ///< where it is mounted
  bool version_2 = false;
};

/// Parses a line of mountinfo for a hierarchy with this controller: "35 31 0:32 /
/// /sys/fs/cgroup/memory rw shared:1 - cgroup cgroup rw,memory". Nothing for other mounts.
std::optional<Mount> parse_mount(std::string_view line, std::string_view controller) {
  const std::vector<std::string_view> words = split_text(line, ' ');
  const size_t dash = std::find(words.begin(), words.end(), "-") - words.begin();
  if (dash < 6 || dash + 3 >= words.size()) return std::nullopt;
  const std::string_view type = words[dash + 1];
  const std::vector<std::string_view> options = split_text(words[dash + 3], ',');
  const bool version_1 =
      type == "cgroup" && std::find(options.begin(), options.end(), controller) != options.end();
  if (!version_1 && type != "cgroup2") return std::nullopt;
  return Mount{std::string(words[3]), std::string(words[4]), !version_1};
}

/// The process's group in the hierarchy of a mount. `groups` is /proc/self/cgroup, with lines such
/// as "4:cpu,memory:/a/b" (version 1) or "0::/a/b" (version 2).
std::string group_of_process(std::string_view groups, const Mount& mount,
                             std::string_view controller) {
  for (const std::string_view line : split_text(groups, '\n')) {
    const size_t first = line.find(':');
    const size_t second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const auto names = split_text(controllers, ',');
    const bool matches = mount.version_2
                             ? controllers.empty()
                             : std::find(names.begin(), names.end(), controller) != names.end();
    if (matches) return std::string(line.substr(second + 1));
  }
  return "/";
}

/// The path from the mount to a group: "b" for "/a/b" if "/a" is mounted. A group outside the
/// mounted one cannot be seen; the mounted one is then the nearest group around it.
std::filesystem::path below_mount(const std::string& group, const std::string& mounted) {
  const std::filesystem::path path =
      std::filesystem::path(group).lexically_relative(std::filesystem::path(mounted));
  const bool outside = path.empty() || *path.begin() == "..";
  return outside || path == "." ? std::filesystem::path() : path;
}

/// The first two numbers of a text such as "150000 100000"; nothing if one of them is a word.
std::optional<std::pair<int64_t, int64_t>> two_numbers(std::string_view text) {
  const std::vector<std::string_view> words = split_text(text.substr(0, text.find('\n')), ' ');
  if (words.size() < 2) return std::nullopt;
  const auto first = parse_whole(words[0]), second = parse_whole(words[1]);
  if (!first.has_value() || !second.has_value()) return std::nullopt;
  return std::pair(*first, *second);
}

/// The time that a group may use per period, and the period.
std::optional<std::pair<int64_t, int64_t>> quota_and_period(const ControlGroup& group) {
  if (group.version_2) return two_numbers(group.read("cpu.max"));
  std::string both = group.read("cpu.cfs_quota_us");  // -1: no limit
  std::replace(both.begin(), both.end(), '\n', ' ');
  return two_numbers(both + group.read("cpu.cfs_period_us"));
}

}  // namespace

std::string ControlGroup::read(const char* name) const {
  return read_small_file(folder + "/" + name);
}

std::vector<ControlGroup> control_groups(std::string_view controller, const std::string& root) {
  std::vector<ControlGroup> found;
  const std::string groups = read_small_file(root + "/proc/self/cgroup");
  const std::string mounts = read_small_file(root + "/proc/self/mountinfo");
  for (const std::string_view line : split_text(mounts, '\n')) {
    const auto mount = parse_mount(line, controller);
    if (!mount.has_value()) continue;
    std::filesystem::path folder = root + mount->folder;
    found.push_back({folder.string(), mount->version_2});
    const std::string group = group_of_process(groups, *mount, controller);
    for (const auto& name : below_mount(group, mount->group)) {
      folder /= name;
      found.push_back({folder.string(), mount->version_2});
    }
  }
  return found;
}

std::optional<int> processor_quota(const std::string& root) {
  std::optional<int> least;
  for (const ControlGroup& group : control_groups("cpu", root)) {
    const auto limit = quota_and_period(group);
    if (!limit.has_value() || limit->first <= 0 || limit->second <= 0) continue;
    constexpr int kMost = 1 << 20;  // more processors than any machine has
    const int64_t whole = limit->first / limit->second;
    const int64_t processors =
        std::min<int64_t>(kMost, whole + (limit->first % limit->second > 0 ? 1 : 0));
    least = std::min(least.value_or(kMost), static_cast<int>(processors));
  }
  return least;
}

std::string read_small_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text;
  char block[4096];
  while (in) {
    in.read(block, sizeof(block));
    text.append(block, static_cast<size_t>(in.gcount()));
  }
  return text;
}

std::vector<std::string_view> split_text(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(separator));
    if (!part.empty()) parts.push_back(part);
    text.remove_prefix(std::min(text.size(), part.size() + 1));
  }
  return parts;
}

}  // namespace snapkv
