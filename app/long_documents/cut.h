// SPDX-License-Identifier: MIT
// Cuts a text into parts of a bounded number of tokens: at pages and paragraphs, where these are
// too long at sentences, and in between only where a sentence alone is too long. The parts follow
// one another without a gap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "long_documents/pages.h"

namespace snapkv::long_documents {

/// The number of tokens of a text.
using CountTokens = std::function<int64_t(std::string_view text)>;

/// Bytes [begin, end) of a text.
struct TextPart {
  size_t begin = 0, end = 0;
  int64_t n_tokens = 0;  ///< of its pieces, which are tokenized one by one: about as many as of all
  int first_page = 0, last_page = 0;  ///< 0: none
};

/// The paragraphs of a text, or their sentences where a paragraph has more than `most_tokens`.
std::vector<TextPart> cut_pieces(std::string_view text, std::span<const PageMark> pages,
                                 int64_t most_tokens, const CountTokens& count);

/// Joins neighbouring pieces to parts of at most `most_tokens`, as few as possible and about
/// equally long. A part ends before a new page where its last quarter has one. No piece may have
/// more than `most_tokens`.
std::vector<TextPart> join_pieces(const std::vector<TextPart>& pieces, int64_t most_tokens);

}  // namespace snapkv::long_documents
