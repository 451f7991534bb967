// SPDX-License-Identifier: MIT
// Parses numbers that people write, whole numbers, real numbers and sizes, completely and exactly.
// A text that is not a number, does not fit, or is not finite gives nothing, never another number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace snapkv {

/// "42", "-1", "+7": decimal digits with an optional sign, without leading zeros or other text,
/// within int64.
std::optional<int64_t> parse_whole(std::string_view text);

/// "0.25", "-3", "1e-5": finite; "nan", "inf" and hexadecimal are not accepted.
std::optional<double> parse_real(std::string_view text);

/// Like C's strtod, which also accepts "inf" and rounds numbers outside double's range to infinity
/// or 0, but with a decimal point in every locale. `end`: where the number ends.
double read_double(const char* text, const char** end = nullptr);

/// A limit as a whole number. A limit that a double cannot distinguish from the largest int64
/// becomes that.
int64_t whole_limit(double limit);

/// Bytes: a number and a unit: b, or K, M, G, T, P, E (1024 and its powers), optionally with
/// B or iB, in any letter case: "8G", "256MiB", "1.5G", "1000b". Without a unit: bytes. Only sizes
/// with a unit of at least 1024 bytes may have a fraction, which is rounded down to bytes. Within
/// int64.
std::optional<int64_t> parse_size(std::string_view text);

/// "8 GiB", "1000 B": the size in the largest unit that divides it; parse_size() reads it back.
std::string size_text(int64_t bytes);

}  // namespace snapkv
