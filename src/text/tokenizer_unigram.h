// SPDX-License-Identifier: MIT
// UnigramTokenizer: SentencePiece's Unigram vocabularies (`tokenizer.ggml.model` = "t5"): texts are
// normalized by a table, then cut into the most probable tokens. Made by Tokenizer::from_gguf.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/chars_map.h"
#include "text/special_splitter.h"
#include "text/unigram_model.h"
#include "text/vocab_tokenizer.h"

namespace snapkv {

class UnigramTokenizer final : public VocabTokenizer {
 public:
  explicit UnigramTokenizer(const GgufFile& file);

  std::vector<int32_t> encode(std::string_view text, bool add_special,
                              bool parse_special) const override;
  std::string piece(int32_t id, bool special) const override;
  std::string description() const override { return "SentencePiece Unigram"; }

 private:
  std::string normalized(std::string_view text) const;
  /// Bytes at the beginning of `text` that some user-defined token begins with too: they stay as
  /// they are.
  size_t kept_prefix(std::string_view text) const;

  CharsMap chars_map_;
  bool merge_spaces_ = false;
  std::vector<std::string_view> user_defined_;  // sorted
  SpecialSplitter splitter_;
  UnigramModel model_;
};

}  // namespace snapkv
