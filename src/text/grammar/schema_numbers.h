// SPDX-License-Identifier: MIT
// Numbers between bounds, as GBNF.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace snapkv::grammar {

/// A range of whole numbers. A missing bound is up to 16 digits, or as many as the other bound has.
struct NumberRange {
  std::optional<int64_t> least, most;
  /// For numbers that need not be whole: the bound itself is not allowed.
  bool above_least = false, below_most = false;
};
/// The caller refuses bounds of more digits.
inline constexpr int64_t kMostBound = 999'999'999'999'999'999;

/// An expression in parentheses; empty if no number is between the bounds.
std::string integers_between(const NumberRange& range);
/// Decimal numbers without exponents, with up to 16 digits after the point.
std::string numbers_between(const NumberRange& range);

}  // namespace snapkv::grammar
