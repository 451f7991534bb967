// SPDX-License-Identifier: MIT
// AddedTokens: cuts a text at the added tokens of a tokenizer.json as Hugging Face's tokenizers do:
// from left to right, taking the longest token at each place. JsonTokenizer cuts twice: the text as
// it was given, and the text that the normalizer made of it.
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
  bool single_word = false;  // matches only where no word character touches it
  bool lstrip = false;       // takes the white space on its left
  bool rstrip = false;       // takes the white space on its right
  bool normalized = true;    // searched for in the normalized text
  bool special = false;      // a control token
};

class AddedTokens {
 public:
  /// A token, or text to tokenize (token < 0).
  struct Section {
    int32_t token = -1;
    std::string_view text;
  };

  AddedTokens() = default;
  /// The tokens, each with the text to search for: its content, normalized or not.
  explicit AddedTokens(std::vector<std::pair<std::string, AddedToken>> tokens);

  bool empty() const { return tokens_.empty(); }
  /// Cuts `text`, which is valid UTF-8, into sections in order; no section's text is empty. If
  /// `parse_special` is false, special tokens stay text, and no other token is searched for inside
  /// them. A special token that overlaps one of the `plain` ranges, which are sorted and disjoint,
  /// always stays text.
  std::vector<Section> split(std::string_view text, bool parse_special,
                             std::span<const ByteRange> plain = {}) const;

 private:
  std::vector<std::pair<std::string, AddedToken>> tokens_;
  TokenMatcher matcher_;  // its ids are indices into tokens_
};

}  // namespace snapkv
