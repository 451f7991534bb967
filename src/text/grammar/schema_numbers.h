// SPDX-License-Identifier: MIT
// Numbers between bounds as GBNF. Called by SchemaReader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace snapkv::grammar {

/// Whole numbers; what is not given is up to 16 digits, or as many as the other bound has.
struct NumberRange {
  std::optional<int64_t> least, most;
  /// Of numbers that need not be whole: the bound itself is not allowed.
  bool above_least = false, below_most = false;
};
/// Bounds of more digits are refused by the caller.
inline constexpr int64_t kMostBound = 999'999'999'999'999'999;

/// An expression in parentheses; empty where no number is
/// between the bounds.
std::string integers_between(const NumberRange& range);
/// Decimal numbers without exponents, with up to 16 digits after the point.
std::string numbers_between(const NumberRange& range);

}  // namespace snapkv::grammar
