// SPDX-License-Identifier: MIT
// without_repeats(): the items of a list option, each once. What is measured twice counts once, or
// intervals would be too narrow. Used by eval and bench.
#pragma once

#include <set>
#include <vector>

namespace snapkv::cli {

/// The first of equal values, in their order.
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
