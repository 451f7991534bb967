// SPDX-License-Identifier: MIT
// Prompts for models that fill in text, in the order that all of them know: text before, text
// after, gap.
#include "snapkv/fill_in.h"

#include "base/error.h"
#include "text/vocab_tokenizer.h"

namespace snapkv {

FillInTokens fill_in_tokens(const Tokenizer& tokenizer) {
  const auto* known = dynamic_cast<const VocabTokenizer*>(&tokenizer);
  return known == nullptr ? FillInTokens() : known->fill_in();
}

std::vector<int32_t> fill_in_prompt(const Tokenizer& tokenizer, std::string_view before,
                                    std::string_view after) {
  const FillInTokens marks = fill_in_tokens(tokenizer);
  if (!marks.complete()) {
    fail(ErrorCode::kUsage,
         "the model's vocabulary has no tokens to fill in between two texts (such as "
         "<|fim_prefix|>, <|fim_suffix|> and <|fim_middle|>)");
  }
  std::vector<int32_t> prompt;
  const auto add = [&](int32_t mark, std::string_view text) {
    prompt.push_back(mark);
    const std::vector<int32_t> ids = tokenizer.encode(text, false, /*parse_special=*/false);
    prompt.insert(prompt.end(), ids.begin(), ids.end());
  };
  if (tokenizer.special().add_bos) prompt.push_back(tokenizer.special().bos);
  add(marks.before, before);
  add(marks.after, after);
  prompt.push_back(marks.gap);
  return prompt;
}

}  // namespace snapkv
