// SPDX-License-Identifier: MIT
// The words of a text, in the form in which Bm25 compares them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace snapkv::long_documents {

/// The words of a text in UTF-8, in order: runs of letters, marks, digits and underscores, with
/// their case folded (NFKC) and their stems instead of inflected forms, English's, Russian's or
/// Greek's by the script. Chinese, Japanese and Thai, which put no blanks between words, give pairs
/// of neighbouring characters. Bytes that are no UTF-8 end a word.
std::vector<std::string> index_words(std::string_view text);

/// Whether a word of index_words() says nothing about what is looked for: an English function word
/// ("what", "of"), or a word about the document itself ("summary", "page").
bool is_common_word(std::string_view word);

}  // namespace snapkv::long_documents
