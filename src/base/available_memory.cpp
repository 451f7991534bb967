// SPDX-License-Identifier: MIT
#include "base/available_memory.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include "base/control_group.h"
#include "base/parse_number.h"

namespace snapkv {
namespace {

/// Bytes that stay free below a group's limit, at which the system kills processes immediately.
/// Plans do not include threads' stacks and the kernel's own data, such as page tables.
constexpr size_t kGroupReserve = size_t{2} << 20, kGroupReserveShare = 64;

constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

/// The number in a file with one number; nothing if there is no file, or a word such as "max".
std::optional<size_t> one_number(const std::string& text) {
  return parse_whole(std::string_view(text).substr(0, text.find('\n')));
}

/// The number after `key` in lines such as "key   123 kB"; 0 if there is no such line.
size_t value_of(std::string_view text, std::string_view key) {
  for (const std::string_view line : split_text(text, '\n')) {
    const std::vector<std::string_view> words = split_text(line, ' ');
    if (words.size() > 1 && words[0] == key) return parse_whole(words[1]).value_or(0);
  }
  return 0;
}

size_t system_available(const std::string& root) {
  constexpr size_t kKib = 1024;
  const size_t kib = value_of(read_small_file(root + "/proc/meminfo"), "MemAvailable:");
  return kib > 0 ? kib * kKib : kUnlimited;
}

/// Bytes that one group leaves, regardless of the groups around it.
size_t left_in(const ControlGroup& group) {
  const bool v2 = group.version_2;
  const auto limit = one_number(group.read(v2 ? "memory.max" : "memory.limit_in_bytes"));
  if (!limit.has_value()) return kUnlimited;
  const auto used = one_number(group.read(v2 ? "memory.current" : "memory.usage_in_bytes"));
  const std::string stat = group.read("memory.stat");  // includes the groups below
  const size_t cached = value_of(stat, v2 ? "active_file" : "total_active_file") +
                        value_of(stat, v2 ? "inactive_file" : "total_inactive_file");
  const size_t kept = used.value_or(0) - std::min(used.value_or(0), cached);
  const size_t left = *limit - std::min(*limit, kept);
  return left - std::min(left, kGroupReserve + *limit / kGroupReserveShare);
}

}  // namespace

size_t available_memory(const std::string& root) {
  size_t available = system_available(root);
  for (const ControlGroup& group : control_groups("memory", root)) {
    available = std::min(available, left_in(group));
  }
  return available;
}

}  // namespace snapkv
