// SPDX-License-Identifier: MIT
// UTF-8: reading, writing and repairing.
//
// "Valid" is Unicode's definition (table 3-7 of the standard): no overlong forms, no surrogates,
// nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace snapkv::utf8 {

inline constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

/// The length in bytes of the character at the start of `text`; 0 if it is not valid.
size_t valid_length(std::string_view text);

/// The length in bytes of `text`'s longest prefix that begins a valid character but is not a whole
/// one; 0 if nothing appended can make `text` valid. "\xe2\x96" gives 2, "\xe2\x28" gives 0.
size_t incomplete_length(std::string_view text);

/// The length in bytes of a valid character that begins with this byte; 1 if none does.
inline size_t length_by_lead(char lead) {
  constexpr uint8_t kLengths[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
  return kLengths[static_cast<unsigned char>(lead) >> 4];
}

/// The code point of the valid character of `length` bytes at `at`.
uint32_t code_point(const char* at, size_t length);

/// Appends a code point up to U+10FFFF that is not a surrogate.
void append(std::string& out, uint32_t code_point);

/// The number of ASCII bytes at the start of `text`.
size_t ascii_prefix(std::string_view text);
/// The number of bytes before the first that is not part of a valid character.
size_t valid_prefix(std::string_view text);
inline bool is_valid(std::string_view text) { return valid_prefix(text) == text.size(); }

/// `text` with every byte that is not part of a valid character replaced by U+FFFD.
std::string with_replacements(std::string_view text);

}  // namespace snapkv::utf8
