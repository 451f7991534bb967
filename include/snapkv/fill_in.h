// SPDX-License-Identifier: MIT
// Fill-in-the-middle: models that were trained for it write the text between two others. Their
// vocabularies have tokens that mark which text is which.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace snapkv {

class Tokenizer;

/// Ids; -1 if the vocabulary has none.
struct FillInTokens {
  int32_t before = -1;  ///< before the text in front of the gap
  int32_t after = -1;   ///< before the text after the gap
  int32_t gap = -1;     ///< before the model's text

  bool complete() const { return before >= 0 && after >= 0 && gap >= 0; }
};

/// Fill-in-the-middle tokens: from the metadata, or else recognised by their text.
FillInTokens fill_in_tokens(const Tokenizer& tokenizer);

/// The prompt after which a model writes the text between two others, with BOS if the model asks
/// for it. Control tokens spelled out in the texts stay text. Throws Error{kUsage} if the
/// vocabulary lacks the tokens, and as Tokenizer::encode() does.
std::vector<int32_t> fill_in_prompt(const Tokenizer& tokenizer, std::string_view before,
                                    std::string_view after);

}  // namespace snapkv
