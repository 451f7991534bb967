// SPDX-License-Identifier: MIT
// Numbers that people write: whole numbers, real numbers and sizes, read as a whole and exactly.
// What is no number, does not fit, or is not finite is nothing, never another number. Used by the
// options of every command (app/cli/common/number_options.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace snapkv {

/// "42", "-1", "+7": decimal digits with a sign, no zeros before them, nothing around them, within
/// int64.
std::optional<int64_t> parse_whole(std::string_view text);

/// "0.25", "-3", "1e-5": finite; no "nan", no "inf", no hexadecimal.
std::optional<double> parse_real(std::string_view text);

/// As C's strtod, which also reads "inf" and rounds what a double can't hold to infinity or 0, but
/// with a point whatever the locale that the program has set. `end`: where the number ends.
double read_double(const char* text, const char** end = nullptr);

/// The whole number that a limit stands for. What a double can't tell from the largest int64 is
/// that.
int64_t whole_limit(double limit);

/// Bytes: a whole number and a unit: b, or K, M, G, T, P, E (1024 and its powers) with or without B
/// or iB, in any letter case: "8G", "256MiB", "1000b". No unit: bytes. Within int64.
std::optional<int64_t> parse_size(std::string_view text);

/// "8 GiB", "1000 B": a size that parse_size() reads, in the largest unit that divides it.
std::string size_text(int64_t bytes);

}  // namespace snapkv
