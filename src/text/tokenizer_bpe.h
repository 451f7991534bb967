// SPDX-License-Identifier: MIT
// BpeTokenizer: byte pair encoding as GGUF files store it (`tokenizer.ggml.model` = "gpt2", and
// "gemma4", whose tokens are spelled as SentencePiece does). Made by Tokenizer::from_gguf.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/bpe_model.h"
#include "text/pre_tokenizers.h"
#include "text/special_splitter.h"
#include "text/split_rules.h"
#include "text/vocab_tokenizer.h"

namespace snapkv {

class BpeTokenizer final : public VocabTokenizer {
 public:
  explicit BpeTokenizer(const GgufFile& file);

  std::vector<int32_t> encode(std::string_view text, bool add_special,
                              bool parse_special) const override;
  std::string piece(int32_t id, bool special) const override;
  std::string description() const override;

 private:
  void encode_text(std::string_view text, std::vector<int32_t>& out) const;

  const PreTokenizer& pre_;
  std::string pre_name_;
  SplitRules rules_;
  SpecialSplitter splitter_;
  BpeModel model_;
};

}  // namespace snapkv
