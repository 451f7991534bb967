// SPDX-License-Identifier: MIT
// Numbers between bounds, as GBNF.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace snapkv::grammar {

inline constexpr int64_t kMostBound = 999'999'999'999'999'999;
/// Digits after the point that numbers have at most.
inline constexpr int kMostFraction = 16;

/// A number as its digits.
struct Decimal {
  bool negative = false;
  int64_t whole = 0;          ///< digits before the point, up to kMostBound
  std::string fraction = {};  ///< those after it, without zeros at the end
  bool fits = true;           ///< it has no more than 18 digits before the point
  bool cut = false;           ///< digits after the point beyond kMostFraction were left out

  bool operator==(const Decimal&) const = default;
};
/// Of a number as JSON writes it: "-1.5e-07".
Decimal decimal_of(const std::string& json);

/// What is not given is up to 16 digits, or as many as the other bound has.
struct NumberRange {
  std::optional<Decimal> least = {}, most = {};
  bool above_least = false, below_most = false;  ///< the bound itself is not allowed
  int n_fraction = kMostFraction;                ///< digits after the point
};
/// Adds a bound, where it allows fewer numbers than the range does.
void narrow(NumberRange& range, Decimal bound, bool is_least, bool exclusive);

/// An expression in parentheses for the whole numbers of a range; empty where there is none.
std::string integers_between(const NumberRange& range);
/// Decimal numbers without exponents.
std::string numbers_between(const NumberRange& range);

/// Digits after the point that multiples of 0.1, 0.01 ... have; 0 for other numbers.
int digits_of_step(const Decimal& step);
/// The whole numbers that are multiples of 2, 5, 10, 100 ...; empty for other steps.
std::string multiples_of(const Decimal& step);

}  // namespace snapkv::grammar
