// SPDX-License-Identifier: MIT
// Unicode: categories of code points as of version 15.1 (llama.cpp's), white space, and
// normalization forms as Hugging Face's tokenizers have them, whatever the version of utf8proc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace snapkv::unicode {

/// The first letter of the general category, which \p{L}, \p{N} ... in split patterns refer to.
enum class Category : uint8_t {
  other,        // C, including unassigned
  letter,       // L
  mark,         // M
  number,       // N
  punctuation,  // P
  symbol,       // S
  separator,    // Z
};
Category category(uint32_t code_point);

/// Whether the code point has the property White_Space.
bool is_white_space(uint32_t code_point);

/// Whether \w of Rust's regular expressions matches: Alphabetic, marks, decimal numbers,
/// connectors, joiners.
bool is_word_character(uint32_t code_point);
/// Whether it is an ASCII punctuation character or symbol, or in the category P.
bool is_punctuation(uint32_t code_point);

enum class Form { nfc, nfd, nfkc, nfkd };
/// `text`, which must be valid UTF-8, in a normalization form. Takes linear time, except for
/// sorting runs of combining marks.
std::string normalized(std::string_view text, Form form);

}  // namespace snapkv::unicode
