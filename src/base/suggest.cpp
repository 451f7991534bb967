// SPDX-License-Identifier: MIT
#include "base/suggest.h"

#include <algorithm>
#include <numeric>

namespace snapkv {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);  // distances from a prefix of `a` to each prefix of `b`
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  constexpr size_t kLongest = 200;  // no option is longer, and the comparison takes quadratic time
  if (name.size() > kLongest) return "";
  // the beginning of a name is meant to be that name: --ctx is --ctx-size
  constexpr size_t kShortestBeginning = 5;  // with the dashes of an option
  std::string whole;
  for (const std::string& candidate : known) {
    if (name.size() < kShortestBeginning || !candidate.starts_with(name)) continue;
    if (whole.empty() || candidate.size() < whole.size()) whole = candidate;
  }
  if (!whole.empty()) return whole;
  std::string nearest;
  size_t least = name.size();
  for (const std::string& candidate : known) {
    const size_t distance = edit_distance(name, candidate);
    if (distance < least && 3 * distance <= candidate.size()) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace snapkv
