// SPDX-License-Identifier: MIT
// Unicode as Python's str methods know it: classes of characters and changes of case. It uses
// utf8proc, and derives the few mappings of one character to several from utf8proc's
// decompositions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace snapkv::jinja {

/// str.isspace(): the white space of strip() and split().
bool is_space(int32_t c);
bool is_alpha(int32_t c);
bool is_decimal(int32_t c);
bool is_digit(int32_t c);
bool is_numeric(int32_t c);
bool is_printable(int32_t c);
/// Letters in this case.
bool is_upper(int32_t c);
bool is_lower(int32_t c);
bool is_title(int32_t c);
bool is_cased(int32_t c);
/// Whether the character may be part of a name; digits are included.
bool is_name_char(int32_t c);

/// Full case mappings of one character to one to three characters.
std::u32string to_upper(int32_t c);
std::u32string to_lower(int32_t c);
std::u32string to_title(int32_t c);
std::u32string fold_case(int32_t c);
/// Whether a capital sigma at byte `at` of `text` ends a word, so that it becomes a final sigma.
bool is_final_sigma(std::string_view text, size_t at);

}  // namespace snapkv::jinja
