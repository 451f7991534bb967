// SPDX-License-Identifier: MIT
#include "text/grammar/schema_numbers.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
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

// Whole numbers of a range; what is not given is as far as 16 digits go, or 18 where the other
// bound is beyond that.
struct Bounds {
  int64_t least, most;
};

bool is_far(const NumberRange& range) {
  return (range.least && !range.least->negative && range.least->whole >= kMostOpen) ||
         (range.most && range.most->negative && range.most->whole >= kMostOpen);
}

Bounds whole_bounds(const NumberRange& range) {
  const int64_t open = is_far(range) ? kMostBound : kMostOpen;
  Bounds bounds = {-open, open};
  // the whole number next to a bound, towards the inside
  const auto inside = [](const Decimal& bound, bool exclusive, bool away_from_zero) {
    const int64_t more = !bound.fraction.empty() ? (away_from_zero ? 1 : 0)  //
                         : exclusive             ? (away_from_zero ? 1 : -1)
                                                 : 0;
    return (bound.negative ? -1 : 1) * (bound.whole + more);
  };
  if (range.least) bounds.least = inside(*range.least, range.above_least, !range.least->negative);
  if (range.most) bounds.most = inside(*range.most, range.below_most, range.most->negative);
  return bounds;
}

bool is_less(const Decimal& a, const Decimal& b) {  // without their signs
  return std::pair(a.whole, a.fraction) < std::pair(b.whole, b.fraction);
}

// What may follow the digits before the point, where these are those of the bounds.
class Fraction {
 public:
  // Null: no bound. `above`, `below`: the bound itself is not allowed.
  Fraction(const std::string* low, bool above, const std::string* high, bool below, int n_digits)
      : above_(above), below_(below), n_most_(n_digits) {
    const size_t n = std::max(low != nullptr ? low->size() : 0, high != nullptr ? high->size() : 0);
    if (low != nullptr) low_ = *low + std::string(n - low->size(), '0');
    if (high != nullptr) high_ = *high + std::string(n - high->size(), '0');
    n_bound_ = n;
    has_low_ = low != nullptr;
    has_high_ = high != nullptr;
  }

  // Nothing where no digits fit.
  std::optional<std::string> text() const {
    const std::string digits = in_parentheses(ways(0, has_low_, has_high_));
    const bool may_end = ends(0, has_low_, has_high_);
    if (digits.empty()) return may_end ? std::optional<std::string>("") : std::nullopt;
    const std::string all = "(\".\" " + digits + ")";
    return may_end ? all + "?" : all;
  }

 private:
  // Whether the number may end after `i` digits; `at_low`, `at_high`: they are those of the bound.
  bool ends(size_t i, bool at_low, bool at_high) const {
    const auto zeros = [&](const std::string& digits) {
      return digits.find_first_not_of('0', std::min(i, digits.size())) == std::string::npos;
    };
    if (at_low && (above_ || !zeros(low_))) return false;
    return !at_high || !below_ || !zeros(high_);
  }

  // Ways to write at least one more digit.
  std::vector<std::string> ways(size_t i, bool at_low, bool at_high) const {
    const int n_left = n_most_ - static_cast<int>(i);
    if (n_left <= 0) return {};
    if (!at_low && !at_high) return {fmt::format("[0-9]{{1,{}}}", n_left)};
    if (i >= n_bound_) {
      if (!at_high) {
        return {above_ ? fmt::format("[0-9]{{0,{}}} [1-9]", n_left - 1)
                       : fmt::format("[0-9]{{1,{}}}", n_left)};
      }
      if (below_ || (at_low && above_)) return {};
      return {fmt::format("\"0\"{{1,{}}}", n_left)};
    }
    std::vector<std::string> all;
    const char first = at_low ? low_[i] : '0', last = at_high ? high_[i] : '9';
    if (first > last) return {};
    if (at_low) add(all, first, i, true, at_high && first == last);
    const char inner_first = static_cast<char>(at_low ? first + 1 : first);
    const char inner_last = static_cast<char>(at_high ? last - 1 : last);
    if (inner_first <= inner_last) {
      all.push_back(one_digit(inner_first, inner_last) +
                    (n_left > 1 ? fmt::format(" [0-9]{{0,{}}}", n_left - 1) : ""));
    }
    if (at_high && !(at_low && first == last)) add(all, last, i, false, true);
    return all;
  }

  void add(std::vector<std::string>& all, char digit, size_t i, bool at_low, bool at_high) const {
    const std::string rest = in_parentheses(ways(i + 1, at_low, at_high));
    const bool may_end = ends(i + 1, at_low, at_high);
    if (rest.empty() && !may_end) return;
    all.push_back(one_digit(digit, digit) +
                  (rest.empty() ? "" : " " + rest + (may_end ? "?" : "")));
  }

  const bool above_, below_;
  const int n_most_;
  std::string low_, high_;
  size_t n_bound_ = 0;
  bool has_low_ = false, has_high_ = false;
};

// Appends alternatives for decimal numbers in low..high, where low >= 0, without excluded ends.
void append_decimals(std::vector<std::string>& ways, const Decimal& low, bool above_low,
                     const Decimal& high, bool below_high, int n_fraction) {
  if (is_less(high, low)) return;
  const auto add = [&](int64_t first, int64_t last, const std::optional<std::string>& fraction) {
    if (first > last || !fraction) return;
    std::vector<std::string> whole;
    append_unsigned(whole, first, last);
    if (whole.empty()) return;
    ways.push_back(in_parentheses(whole) + (fraction->empty() ? "" : " " + *fraction));
  };
  if (low.whole == high.whole) {
    add(low.whole, low.whole,
        Fraction(&low.fraction, above_low, &high.fraction, below_high, n_fraction).text());
    return;
  }
  add(low.whole, low.whole, Fraction(&low.fraction, above_low, nullptr, false, n_fraction).text());
  add(low.whole + 1, high.whole - 1, Fraction(nullptr, false, nullptr, false, n_fraction).text());
  add(high.whole, high.whole,
      Fraction(nullptr, false, &high.fraction, below_high, n_fraction).text());
}

}  // namespace

Decimal decimal_of(const std::string& json) {
  Decimal result;
  std::string digits;
  int64_t point = -1, exponent = 0;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '-') result.negative = true;
    if (c >= '0' && c <= '9') digits += c;
    if (c == '.') point = std::ssize(digits);
    if (c == 'e' || c == 'E') {
      exponent = std::stoll(json.substr(i + 1));
      break;
    }
  }
  point = (point < 0 ? std::ssize(digits) : point) + exponent;
  const size_t n_zeros = std::min(digits.find_first_not_of('0'), digits.size());
  digits.erase(0, n_zeros);
  point -= static_cast<int64_t>(n_zeros);
  if (digits.empty()) return {};
  if (point > 18) return {.negative = result.negative, .fits = false};
  if (point < 0) digits.insert(0, std::min<size_t>(static_cast<size_t>(-point), 400), '0');
  const auto n_whole = static_cast<size_t>(std::max<int64_t>(point, 0));
  if (digits.size() < n_whole) digits.append(n_whole - digits.size(), '0');
  if (n_whole > 0) result.whole = std::stoll(digits.substr(0, n_whole));
  result.fraction = digits.substr(n_whole);
  if (result.fraction.size() > kMostFraction) {
    result.cut = result.fraction.find_first_not_of('0', kMostFraction) != std::string::npos;
    result.fraction.resize(kMostFraction);
  }
  result.fraction.erase(result.fraction.find_last_not_of('0') + 1);
  return result;
}

void narrow(NumberRange& range, Decimal bound, bool is_least, bool exclusive) {
  // numbers have no digits where the bound was cut: those beyond what is left are beyond it
  if (bound.cut) exclusive = is_least != bound.negative;
  bound.cut = false;
  std::optional<Decimal>& known = is_least ? range.least : range.most;
  bool& is_open = is_least ? range.above_least : range.below_most;
  const auto less = [](const Decimal& a, const Decimal& b) {
    if (a.negative != b.negative) return a.negative;
    return a.negative ? is_less(b, a) : is_less(a, b);
  };
  if (!known || (is_least ? less(*known, bound) : less(bound, *known))) {
    known = std::move(bound);
    is_open = exclusive;
  } else if (*known == bound) {
    is_open = is_open || exclusive;
  }
}

std::string integers_between(const NumberRange& range) {
  const auto [least, most] = whole_bounds(range);
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
  const int64_t open = is_far(range) ? kMostBound : kMostOpen;
  const Decimal zero, least = range.least.value_or(Decimal{.negative = true, .whole = open});
  const Decimal most = range.most.value_or(Decimal{.whole = open});
  std::vector<std::string> ways;
  if (least.negative) {
    std::vector<std::string> negative;
    const bool to_zero = !most.negative;  // -0 is 0: left out
    append_decimals(negative, to_zero ? zero : most, to_zero || range.below_most, least,
                    range.above_least, range.n_fraction);
    if (!negative.empty()) ways.push_back("\"-\" " + in_parentheses(negative));
  }
  if (!most.negative) {
    append_decimals(ways, least.negative ? zero : least, !least.negative && range.above_least, most,
                    range.below_most, range.n_fraction);
  }
  return in_parentheses(ways);
}

int digits_of_step(const Decimal& step) {
  const size_t n = step.fraction.size();
  const bool is_step = step.whole == 0 && step.fits && !step.cut && n > 0 &&
                       step.fraction == std::string(n - 1, '0') + "1";
  return is_step ? static_cast<int>(n) : 0;
}

std::string multiples_of(const Decimal& step) {
  if (!step.fraction.empty() || !step.fits || step.cut) return "";
  if (step.whole == 2) return R"("-"? ([1-9] [0-9]{0,14})? [02468])";
  if (step.whole == 5) return R"("-"? ([1-9] [0-9]{0,14})? [05])";
  int n_zeros = 0;
  int64_t rest = step.whole;
  while (rest > 0 && rest % 10 == 0) rest /= 10, ++n_zeros;
  if (rest != 1 || n_zeros == 0 || n_zeros > 15) return "";
  return fmt::format(R"(("0" | "-"? [1-9] [0-9]{{0,{}}} "0"{{{}}}))", 15 - n_zeros, n_zeros);
}

}  // namespace snapkv::grammar
