// SPDX-License-Identifier: MIT
#include "text/grammar/schema_numbers.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

namespace snapkv::grammar {
namespace {

constexpr int64_t kMostOpen = 9'999'999'999'999'999;  // 16 digits, as for integers without bounds

std::string any_digits(size_t n) {
  return n == 0 ? "" : n == 1 ? "[0-9]" : fmt::format("[0-9]{{{}}}", n);
}

std::string one_digit(char first, char last) {
  return first == last ? fmt::format("\"{}\"", first) : fmt::format("[{}-{}]", first, last);
}

std::string joined(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    text += (text.empty() ? "" : between) + part;
  }
  return text;
}

std::string in_parentheses(const std::vector<std::string>& alternatives) {
  return alternatives.empty() ? "" : "(" + joined(alternatives, " | ") + ")";
}

// An expression for the digits from `low` to `high`, two texts of the same length.
std::string digits_between(const std::string& low, const std::string& high) {
  const auto all = [](const std::string& text, char digit) {
    return std::all_of(text.begin(), text.end(), [&](char c) { return c == digit; });
  };
  const size_t n = low.size();
  if (all(low, '0') && all(high, '9')) return any_digits(n);
  const std::string low_rest = low.substr(1), high_rest = high.substr(1);
  if (low[0] == high[0]) {
    return joined({one_digit(low[0], low[0]), digits_between(low_rest, high_rest)}, " ");
  }
  std::vector<std::string> ways;
  char first = low[0], last = high[0];
  if (!all(low_rest, '0')) {
    ways.push_back(
        joined({one_digit(first, first), digits_between(low_rest, std::string(n - 1, '9'))}, " "));
    ++first;
  }
  const bool cut = !all(high_rest, '9');
  if (cut) --last;
  if (first <= last) ways.push_back(joined({one_digit(first, last), any_digits(n - 1)}, " "));
  if (cut) {
    ways.push_back(joined(
        {one_digit(high[0], high[0]), digits_between(std::string(n - 1, '0'), high_rest)}, " "));
  }
  return ways.size() == 1 ? ways.front() : in_parentheses(ways);
}

// Appends alternatives for low..high, where low >= 0.
void append_unsigned(std::vector<std::string>& ways, int64_t low, int64_t high) {
  constexpr int kMostDigits = 18;  // those of kMostBound
  int64_t first = 0, last = 9;     // the first and last number of n digits
  for (int n = 1;; ++n) {
    if (low <= last && high >= first) {
      ways.push_back(digits_between(std::to_string(std::max(low, first)),
                                    std::to_string(std::min(high, last))));
    }
    if (n == kMostDigits) break;
    first = last + 1;
    last = last * 10 + 9;
  }
}

struct Bounds {
  int64_t least, most;
};

// A missing bound has 16 digits, or 18 if the other bound is beyond that.
Bounds bounds_of(const NumberRange& range) {
  const bool far = std::max(range.least.value_or(0), -range.most.value_or(0)) >= kMostOpen;
  const int64_t open = far ? kMostBound : kMostOpen;
  return {range.least.value_or(-open), range.most.value_or(open)};
}

// Appends alternatives for decimal numbers in low..high, where low >= 0, without excluded ends.
void append_decimals(std::vector<std::string>& ways, int64_t low, bool above_low, int64_t high,
                     bool below_high) {
  constexpr const char* kNotZero = R"("." [0-9]{0,15} [1-9])";
  if (low > high || (low == high && (above_low || below_high))) return;
  std::vector<std::string> whole;
  if (above_low) {  // after low itself, only decimals that are not all zero
    append_unsigned(whole, low, low);
    ways.push_back(whole.front() + " " + kNotZero);
    whole.clear();
    ++low;
  }
  if (low <= high - 1) append_unsigned(whole, low, high - 1);
  if (!whole.empty()) ways.push_back(in_parentheses(whole) + R"( ("." [0-9]{1,16})?)");
  if (below_high || low > high) return;
  whole.clear();
  append_unsigned(whole, high, high);
  ways.push_back(whole.front() + R"( ("." "0"{1,16})?)");
}

}  // namespace

std::string integers_between(const NumberRange& range) {
  const auto [least, most] = bounds_of(range);
  std::vector<std::string> ways;
  if (least < 0 && least <= most) {
    std::vector<std::string> negative;
    append_unsigned(negative, most < 0 ? -most : 1, -least);
    ways.push_back("\"-\" " + in_parentheses(negative));
  }
  if (most >= 0 && least <= most) append_unsigned(ways, std::max<int64_t>(least, 0), most);
  return in_parentheses(ways);
}

std::string numbers_between(const NumberRange& range) {
  const auto [least, most] = bounds_of(range);
  std::vector<std::string> ways;
  if (least < 0) {
    std::vector<std::string> negative;
    const bool to_zero = most >= 0;  // -0 equals 0 and is left out
    append_decimals(negative, to_zero ? 0 : -most, to_zero || range.below_most, -least,
                    range.above_least);
    if (!negative.empty()) ways.push_back("\"-\" " + in_parentheses(negative));
  }
  if (most >= 0) {
    append_decimals(ways, std::max<int64_t>(least, 0), least >= 0 && range.above_least, most,
                    range.below_most);
  }
  return in_parentheses(ways);
}

}  // namespace snapkv::grammar
