// SPDX-License-Identifier: MIT
// Filters that turn a value into a number.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/parse_number.h"
#include "text/jinja/arguments.h"
#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"
#include "text/jinja/text_functions.h"
#include "text/jinja/unicode.h"

namespace snapkv::jinja {
namespace {

/// Removes what Python's int() and float() ignore: white space around the number and single
/// underscores between digits; nullopt if there are underscores elsewhere.
std::optional<std::string> number_text(Budget& budget, const Text& text) {
  const std::string stripped = strip(budget, text, nullptr, Side::both)->bytes();
  std::string digits;
  const auto is_digit_at = [&](size_t i) {
    return i < stripped.size() && std::isalnum(static_cast<unsigned char>(stripped[i])) != 0;
  };
  for (size_t i = 0; i < stripped.size(); ++i) {
    if (stripped[i] != '_') {
      digits += stripped[i];
    } else if (i == 0 || !is_digit_at(i - 1) || !is_digit_at(i + 1)) {
      return std::nullopt;
    }
  }
  return digits;
}

/// Python's float(); nullopt if the text is not a number.
std::optional<double> parse_real(Budget& budget, const Text& text) {
  const std::optional<std::string> digits = number_text(budget, text);
  if (!digits || digits->empty() || digits->size() > 4096) return std::nullopt;
  if (digits->find_first_of("xXpP(") != std::string::npos) return std::nullopt;  // C's own forms
  const char* end = nullptr;
  const double value = read_double(digits->c_str(), &end);
  if (end != digits->c_str() + digits->size()) return std::nullopt;
  return value;
}

/// Python's int(text, base); nullopt if the text is not an integer. Throws for more than 64 bits.
std::optional<int64_t> parse_integer(Budget& budget, const Text& text, int64_t base) {
  std::optional<std::string> all = number_text(budget, text);
  if (!all) return std::nullopt;
  std::string_view digits = *all;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  const auto skip_prefix = [&](int64_t of, char letter) {
    const bool there = digits.size() > 1 && digits[0] == '0' && (digits[1] | 0x20) == letter;
    if (there && (base == of || base == 0)) {
      digits.remove_prefix(2);
      base = of;
    }
  };
  skip_prefix(16, 'x');
  skip_prefix(8, 'o');
  skip_prefix(2, 'b');
  if (base == 0) base = 10;
  if (base < 2 || base > 36 || digits.empty()) return std::nullopt;
  int64_t value = 0;
  bool overflow = false;
  for (const char c : digits) {
    const int digit = c >= '0' && c <= '9'                          ? c - '0'
                      : std::isalpha(static_cast<unsigned char>(c)) ? (c | 0x20) - 'a' + 10
                                                                    : 99;
    if (digit >= base) return std::nullopt;
    overflow = overflow || __builtin_mul_overflow(value, base, &value) ||
               __builtin_sub_overflow(value, int64_t{digit}, &value);
  }
  const bool too_large = overflow || (!negative && value == std::numeric_limits<int64_t>::min());
  if (too_large) fail(ErrorCode::kUsage, "an integer would need more than 64 bits");
  return negative ? value : -value;
}

std::optional<int64_t> truncated(double value) {
  if (!std::isfinite(value)) return std::nullopt;
  if (value >= 0x1p63 || value < -0x1p63) {
    fail(ErrorCode::kUsage, "an integer would need more than 64 bits");
  }
  return static_cast<int64_t>(value);
}

Value int_filter(Interpreter& in, const Value& value, Arguments& args) {
  const auto [otherwise, base] = bind("int", {"default", "base"}, 0, args);
  if (value.is_undefined()) fail_undefined(value);
  std::optional<int64_t> number;
  if (value.is_integer()) {
    number = value.integer();
  } else if (value.is<double>()) {
    number = truncated(value.number());
  } else if (value.is_text()) {
    Budget& budget = in.budget();
    number = parse_integer(budget, value.text(), integer_argument("int", "base", base, 10));
    if (!number) {
      const std::optional<double> real = parse_real(budget, value.text());
      if (real) number = truncated(*real);
    }
  }
  return number ? Value(*number) : otherwise.value_or(Value(int64_t{0}));
}

Value float_filter(Interpreter& in, const Value& value, Arguments& args) {
  const auto [otherwise] = bind("float", {"default"}, 0, args);
  if (value.is_undefined()) fail_undefined(value);
  if (value.is_number()) return Value(value.number());
  std::optional<double> number;
  if (value.is_text()) number = parse_real(in.budget(), value.text());
  return number ? Value(*number) : otherwise.value_or(Value(0.0));
}

Value abs_filter(Interpreter&, const Value& value, Arguments& args) {
  bind_none("abs", args);
  if (value.is<double>()) return Value(std::abs(value.number()));
  if (value.is_integer())
    return value.integer() < 0 ? signed_value("-", value) : signed_value("+", value);
  if (value.is_undefined()) fail_undefined(value);
  fail(ErrorCode::kUsage, "abs needs a number, not a {}", value.type_name());
}

/// Rounds half to even, as Python does; a decimal place is rounded exactly.
double round_to(double value, int64_t places) {
  if (!std::isfinite(value) || places > 400) return value;
  if (places >= 0) {
    return read_double(fmt::format("{:.{}f}", value, static_cast<int>(places)).c_str());
  }
  if (places < -310) return std::copysign(0.0, value);
  const double unit = std::pow(10.0, static_cast<double>(-places));
  return std::nearbyint(value / unit) * unit;
}

int64_t round_to(int64_t value, int64_t places) {
  if (places >= 0) return value;
  if (places < -18) return 0;
  int64_t unit = 1;
  for (int64_t i = 0; i < -places; ++i) unit *= 10;
  int64_t below = value / unit * unit;
  if (below > value && __builtin_sub_overflow(below, unit, &below)) return value;
  const int64_t rest = value - below;
  const bool up = rest > unit - rest || (rest == unit - rest && (below / unit) % 2 != 0);
  if (up && __builtin_add_overflow(below, unit, &below)) {
    fail(ErrorCode::kUsage, "an integer would need more than 64 bits");
  }
  return below;
}

Value round_filter(Interpreter&, const Value& value, Arguments& args) {
  const auto [precision, method] = bind("round", {"precision", "method"}, 0, args);
  const std::string how = method ? text_argument("round", "method", *method)->bytes() : "common";
  if (how != "common" && how != "ceil" && how != "floor") {
    fail(ErrorCode::kUsage, "round: 'method' must be common, ceil or floor, not '{}'", how);
  }
  const int64_t places = integer_argument("round", "precision", precision, 0);
  if (!value.is_number()) {
    if (value.is_undefined()) fail_undefined(value);
    fail(ErrorCode::kUsage, "round needs a number, not a {}", value.type_name());
  }
  if (how == "common") {
    if (value.is_integer()) return Value(round_to(value.integer(), places));
    return Value(round_to(value.number(), places));
  }
  const double unit = std::pow(10.0, static_cast<double>(places));
  const double scaled = value.number() * unit;
  return Value((how == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit);
}

}  // namespace

std::span<const NamedFilter> number_filters() {
  static constexpr NamedFilter kFilters[] = {
      {"int", &int_filter},
      {"float", &float_filter},
      {"abs", &abs_filter},
      {"round", &round_filter},
  };
  return kFilters;
}

}  // namespace snapkv::jinja
