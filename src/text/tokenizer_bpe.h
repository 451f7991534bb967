// SPDX-License-Identifier: MIT
// BpeTokenizer: byte pair encoding as GGUF files store it: `tokenizer.ggml.model` = "gpt2", or
// "gemma4", whose tokens are spelled as in SentencePiece.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/bpe_model.h"
#include "text/pre_tokenizers.h"
#include "text/split_rules.h"
#include "text/split_tokenizer.h"

namespace snapkv {

class BpeTokenizer final : public SplitTokenizer {
 public:
  explicit BpeTokenizer(const GgufFile& file);

  std::string piece(int32_t id, bool special) const override;
  std::string description() const override;

 private:
  void encode_fragment(std::string_view text, bool after_special,
                       std::vector<int32_t>& out) const override;

  const PreTokenizer& pre_;
  std::string pre_name_;
  SplitRules rules_;
  BpeModel model_;
};

}  // namespace snapkv
