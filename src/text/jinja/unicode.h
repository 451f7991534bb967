// SPDX-License-Identifier: MIT
// What Python's str methods know of Unicode: classes of characters and changes of case. Through
// utf8proc; the few mappings of one character to several are derived from its decompositions. Used
// by the lexer and by string methods and filters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace snapkv::jinja {

/// str.isspace(): what strip() and split() take as white space.
bool is_space(int32_t c);
bool is_alpha(int32_t c);
bool is_decimal(int32_t c);
bool is_digit(int32_t c);
bool is_numeric(int32_t c);
bool is_printable(int32_t c);
/// Letters that have a case.
bool is_upper(int32_t c);
bool is_lower(int32_t c);
bool is_title(int32_t c);
bool is_cased(int32_t c);
/// May be part of a name, digits included.
bool is_name_char(int32_t c);

/// Full case mappings, of one character to one to three.
std::u32string to_upper(int32_t c);
std::u32string to_lower(int32_t c);
std::u32string to_title(int32_t c);
std::u32string fold_case(int32_t c);
/// Whether a capital sigma at byte `at` of `text` ends a word: it then becomes the final sigma.
bool is_final_sigma(std::string_view text, size_t at);

}  // namespace snapkv::jinja
