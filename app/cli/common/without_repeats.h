// SPDX-License-Identifier: MIT
// without_repeats(): the items of a list option, each once. Measuring a configuration twice must
// not count twice, or confidence intervals would be too narrow.
#pragma once

#include <set>
#include <vector>

namespace snapkv::cli {

/// Keeps the first of equal values, in the order of the list.
template <typename T>
std::vector<T> without_repeats(const std::vector<T>& list) {
  std::vector<T> once;
  std::set<T> seen;
  for (const T& value : list) {
    if (seen.insert(value).second) once.push_back(value);
  }
  return once;
}

}  // namespace snapkv::cli
