// SPDX-License-Identifier: MIT
#include "base/parse_number.h"

#include <fmt/core.h>
#include <locale.h>
#include <stdlib.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace snapkv {
namespace {

constexpr std::string_view kUnits = "kmgtpe";  // each 1024 times the one before

/// Skips a "+", which from_chars does not accept; false for "+-1", which must not become -1.
bool skip_plus(std::string_view& text) {
  if (!text.starts_with('+')) return true;
  text.remove_prefix(1);
  return !text.starts_with('-');
}

template <typename T>
std::optional<T> parse_all(std::string_view text) {
  if (!skip_plus(text)) return std::nullopt;
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<int64_t> parse_whole(std::string_view text) {
  const std::string_view digits =
      text.substr(text.starts_with('-') || text.starts_with('+') ? 1 : 0);
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;  // octal to some readers
  return parse_all<int64_t>(text);
}

std::optional<double> parse_real(std::string_view text) {
  const std::optional<double> value = parse_all<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;  // it accepts "nan" and "inf"
}

double read_double(const char* text, const char** end) {
  static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);
  char* last = nullptr;
  const double value = strtod_l(text, &last, c_locale);
  if (end != nullptr) *end = last;
  return value;
}

int64_t whole_limit(double limit) {
  return limit >= 0x1p63 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(limit);
}

std::optional<int64_t> parse_size(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  std::string_view rest = lower;
  const size_t n_digits = std::min(rest.find_first_not_of("+-0123456789"), rest.size());
  const std::optional<int64_t> count = parse_whole(rest.substr(0, n_digits));
  rest.remove_prefix(n_digits);
  double fraction = 0;  // of a unit: "1.5G"
  if (rest.starts_with('.')) {
    const size_t end = std::min(rest.find_first_not_of("0123456789", 1), rest.size());
    const std::optional<double> part = parse_real("0" + std::string(rest.substr(0, end)));
    if (!part || end == 1) return std::nullopt;
    fraction = *part;
    rest.remove_prefix(end);
  }
  if (rest.starts_with(' ') && rest.size() > 1) rest.remove_prefix(1);  // "256 MiB"
  int64_t unit = 1;
  if (!rest.empty() && rest != "b") {
    const size_t power = kUnits.find(rest.front());
    const std::string_view suffix = rest.substr(1);
    const bool known = suffix.empty() || suffix == "b" || suffix == "ib";
    if (power == std::string_view::npos || !known) return std::nullopt;
    unit = int64_t{1} << (10 * (power + 1));
  }
  if (!count || *count > std::numeric_limits<int64_t>::max() / unit ||
      *count < std::numeric_limits<int64_t>::min() / unit) {
    return std::nullopt;
  }
  if (fraction == 0) return *count * unit;
  const auto bytes = static_cast<int64_t>(fraction * static_cast<double>(unit));
  const int64_t whole = *count * unit;
  if (unit == 1 || lower.front() == '-' || whole > std::numeric_limits<int64_t>::max() - bytes) {
    return std::nullopt;
  }
  return whole + bytes;
}

std::string size_text(int64_t bytes) {
  static constexpr const char* kNames[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < std::size(kNames)) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{} {}", bytes, kNames[unit]);
}

}  // namespace snapkv
