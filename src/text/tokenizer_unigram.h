// SPDX-License-Identifier: MIT
// UnigramTokenizer: SentencePiece's Unigram vocabularies (`tokenizer.ggml.model` = "t5"): a text is
// normalized by a table, then cut into the most probable tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/chars_map.h"
#include "text/split_tokenizer.h"
#include "text/unigram_model.h"

namespace snapkv {

class UnigramTokenizer final : public SplitTokenizer {
 public:
  explicit UnigramTokenizer(const GgufFile& file);

  std::string piece(int32_t id, bool special) const override;
  std::string description() const override { return "SentencePiece Unigram"; }

 private:
  void encode_fragment(std::string_view text, bool after_special,
                       std::vector<int32_t>& out) const override;
  std::string normalized(std::string_view text) const;
  /// The length of the longest prefix of `text` with which a user-defined token begins; such bytes
  /// are not normalized.
  size_t kept_prefix(std::string_view text) const;

  CharsMap chars_map_;
  bool merge_spaces_ = false;
  std::vector<std::string_view> user_defined_;  // sorted
  UnigramModel model_;
};

}  // namespace snapkv
