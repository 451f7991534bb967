// SPDX-License-Identifier: MIT
// SpecialSplitter: cuts a text at the special tokens spelled out in it, before a tokenizer reads
// the text between them. The order is llama.cpp's: the longest token first, each wherever it occurs
// in the text that longer tokens left, from left to right.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "snapkv/chat.h"
#include "text/token_matcher.h"
#include "text/vocab.h"

namespace snapkv {

class SpecialSplitter {
 public:
  /// A token, or text to tokenize (token < 0).
  struct Fragment {
    int32_t token = -1;
    std::string_view text;
  };

  /// Keeps a reference to the vocabulary.
  explicit SpecialSplitter(const Vocab& vocab);

  /// Cuts `text` into fragments in order; their texts are views of it and not empty. If
  /// `parse_special` is false, only user-defined tokens are cut out. The same holds for tokens that
  /// overlap one of the `plain` ranges, which are sorted and disjoint.
  std::vector<Fragment> split(std::string_view text, bool parse_special,
                              std::span<const ByteRange> plain = {}) const;

 private:
  struct Cut;
  std::vector<Cut> find_cuts(std::string_view text, const TokenMatcher& matcher,
                             std::span<const ByteRange> plain) const;
  /// Whether a token may be cut out at [begin, end).
  bool is_allowed(int32_t token, size_t begin, size_t end, std::span<const ByteRange> plain) const;

  const Vocab& vocab_;
  TokenMatcher all_;
  TokenMatcher user_defined_;
};

}  // namespace snapkv
