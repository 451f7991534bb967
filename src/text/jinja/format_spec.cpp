// SPDX-License-Identifier: MIT
#include "text/jinja/format_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "text/jinja/operators.h"
#include "text/jinja/text_functions.h"

namespace snapkv::jinja {
namespace {

constexpr int64_t kMaxPrecision = 500;

bool is_align(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

/// The digits of an integer, without its sign.
std::string integer_digits(const FormatSpec& spec, int64_t number) {
  const uint64_t magnitude =
      number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
  switch (spec.type) {
    case 'x':
      return (spec.alternate ? "0x" : "") + fmt::format("{:x}", magnitude);
    case 'X':
      return (spec.alternate ? "0X" : "") + fmt::format("{:X}", magnitude);
    case 'o':
      return (spec.alternate ? "0o" : "") + fmt::format("{:o}", magnitude);
    case 'b':
      return (spec.alternate ? "0b" : "") + fmt::format("{:b}", magnitude);
    default:
      return std::to_string(magnitude);
  }
}

/// The digits of a real number, without its sign.
std::string real_digits(const FormatSpec& spec, double number) {
  const double magnitude = std::abs(number);
  const auto precision = static_cast<int>(spec.precision < 0 ? 6 : spec.precision);
  if (std::isnan(number))
    return spec.type == 'F' || spec.type == 'E' || spec.type == 'G' ? "NAN" : "nan";
  if (std::isinf(number))
    return spec.type == 'F' || spec.type == 'E' || spec.type == 'G' ? "INF" : "inf";
  switch (spec.type) {
    case 'f':
    case 'F':
      return fmt::format("{:.{}f}", magnitude, precision);
    case 'e':
      return fmt::format("{:.{}e}", magnitude, precision);
    case 'E':
      return fmt::format("{:.{}E}", magnitude, precision);
    case 'g':
      return fmt::format("{:.{}g}", magnitude, precision);
    case 'G':
      return fmt::format("{:.{}G}", magnitude, precision);
    case '%':
      return fmt::format("{:.{}f}%", magnitude * 100, precision);
    default:
      if (spec.precision < 0) return number_repr(magnitude);
      return fmt::format("{:.{}g}", magnitude, std::max(precision, 1));
  }
}

/// 1234567 -> 1,234,567; groups only the digits before a point or exponent.
std::string grouped(std::string digits, char separator) {
  const size_t end = digits.find_first_not_of("0123456789");
  size_t at = end == std::string::npos ? digits.size() : end;
  while (at > 3) {
    at -= 3;
    digits.insert(at, 1, separator);
  }
  return digits;
}

bool is_integer_type(char type) {
  return type == 0 || std::string_view("dxXobnc").find(type) != std::string_view::npos;
}
bool is_real_type(char type) {
  return type == 0 || std::string_view("fFeEgG%n").find(type) != std::string_view::npos;
}

}  // namespace

FormatSpec parse_spec(const Text& text) {
  FormatSpec spec;
  std::string_view rest = text.bytes();
  const auto take = [&](char c) {
    if (!rest.starts_with(c)) return false;
    rest.remove_prefix(1);
    return true;
  };
  const auto number = [&](int64_t limit) {
    int64_t value = 0;
    while (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') {
      value = std::min<int64_t>(value * 10 + (rest[0] - '0'), limit + 1);
      rest.remove_prefix(1);
    }
    if (value > limit) fail(ErrorCode::kUsage, "the format '{}' is too wide", text.bytes());
    return value;
  };
  const size_t first = rest.empty() ? 0 : char_bytes(rest[0]);
  if (rest.size() > first && is_align(rest[first])) {
    spec.fill = rest.substr(0, first);
    spec.align = rest[first];
    rest.remove_prefix(first + 1);
  } else if (!rest.empty() && is_align(rest[0])) {
    spec.align = rest[0];
    rest.remove_prefix(1);
  }
  if (!rest.empty() && (rest[0] == '+' || rest[0] == '-' || rest[0] == ' ')) {
    spec.sign = rest[0];
    rest.remove_prefix(1);
  }
  spec.alternate = take('#');
  if (take('0') && spec.align == 0) {
    spec.fill = "0";
    spec.align = '=';
  }
  spec.width = number(1 << 20);
  if (!rest.empty() && (rest[0] == ',' || rest[0] == '_')) {
    spec.grouping = rest[0];
    rest.remove_prefix(1);
  }
  if (take('.')) spec.precision = number(kMaxPrecision);
  if (!rest.empty()) {
    spec.type = rest[0];
    rest.remove_prefix(1);
  }
  if (!rest.empty()) fail(ErrorCode::kUsage, "'{}' is not a format", text.bytes());
  return spec;
}

void append_number(Budget& budget, const FormatSpec& spec, const Value& value, TextBuilder& out) {
  const bool as_real =
      value.is<double>() || (spec.type != 0 && spec.type != 'n' && is_real_type(spec.type));
  if (as_real ? !is_real_type(spec.type) : !is_integer_type(spec.type)) {
    fail(ErrorCode::kUsage, "a {} can't be formatted as '{}'", value.type_name(), spec.type);
  }
  if (spec.precision > kMaxPrecision) fail(ErrorCode::kUsage, "a format is too wide");
  if (spec.type == 'c') {
    const int64_t c = value.integer();
    const bool valid = c >= 0 && c <= 0x10ffff && (c < 0xd800 || c >= 0xe000);
    if (!valid) fail(ErrorCode::kUsage, "{} is not a character", c);
    std::string bytes;
    utf8::append(bytes, static_cast<uint32_t>(c));
    return append_text(budget, spec, Text(bytes), out);
  }
  const bool negative =
      as_real ? std::signbit(value.number()) && !std::isnan(value.number()) : value.integer() < 0;
  std::string digits =
      as_real ? real_digits(spec, value.number()) : integer_digits(spec, value.integer());
  if (spec.grouping != 0) digits = grouped(std::move(digits), spec.grouping);
  const std::string sign = negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  if (spec.align == '=') {
    out.append(sign);
    const auto left = spec.width - std::ssize(sign);
    out.append(*pad(budget, Text(digits), left, spec.fill, true, false));
    return;
  }
  const bool left = spec.align != '<', right = spec.align == '<' || spec.align == '^';
  out.append(*pad(budget, Text(sign + digits), spec.width, spec.fill, left, right));
}

void append_text(Budget& budget, const FormatSpec& spec, const Text& text, TextBuilder& out) {
  const int64_t n = spec.precision < 0 ? text.size() : std::min(spec.precision, text.size());
  const TextPtr cut = substring(budget, text, 0, text.offset(n));
  const bool left = spec.align == '>' || spec.align == '^';
  out.append(*pad(budget, *cut, spec.width, spec.fill, left, spec.align != '>'));
}

}  // namespace snapkv::jinja
