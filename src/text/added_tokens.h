// SPDX-License-Identifier: MIT
// AddedTokens: cuts a text at the added tokens of a tokenizer.json, as Hugging Face's tokenizers
// do: at each place the longest one, from left to right. JsonTokenizer uses it twice: on the text
// as it is, and on what the normalizer made of it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "snapkv/chat.h"
#include "text/token_matcher.h"

namespace snapkv {

/// An entry of "added_tokens".
struct AddedToken {
  int32_t id = -1;
  std::string content;
  bool single_word = false;  // not inside a word
  bool lstrip = false;       // takes the white space on its left, on its right
  bool rstrip = false;
  bool normalized = true;  // found in normalized text
  bool special = false;    // a control token
};

class AddedTokens {
 public:
  /// A token, or text (token < 0) to tokenize.
  struct Section {
    int32_t token = -1;
    std::string_view text;
  };

  AddedTokens() = default;
  /// Tokens to find, with the text to find for each (its content, or that normalized).
  explicit AddedTokens(std::vector<std::pair<std::string, AddedToken>> tokens);

  bool empty() const { return tokens_.empty(); }
  /// Sections of `text`, which is valid UTF-8, in order; texts are not empty. If `parse_special` is
  /// false, special tokens stay text, and what they cover is not searched for other tokens. Special
  /// tokens with bytes in `plain`, whose ranges are sorted and disjoint, stay text in any case.
  std::vector<Section> split(std::string_view text, bool parse_special,
                             std::span<const ByteRange> plain = {}) const;

 private:
  std::vector<std::pair<std::string, AddedToken>> tokens_;
  TokenMatcher matcher_;  // ids are places in tokens_
};

}  // namespace snapkv
