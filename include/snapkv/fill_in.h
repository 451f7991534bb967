// SPDX-License-Identifier: MIT
// Filling in: models that were trained for it write what stands between two texts. Their
// vocabularies have tokens that say which text is which.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace snapkv {

class Tokenizer;

/// Ids; -1 where the vocabulary has none.
struct FillInTokens {
  int32_t before = -1;  ///< in front of the text that comes before the gap
  int32_t after = -1;   ///< in front of the text that comes after it
  int32_t gap = -1;     ///< in front of the model's text

  bool complete() const { return before >= 0 && after >= 0 && gap >= 0; }
};

/// Those that the metadata names, or by the texts that models use.
FillInTokens fill_in_tokens(const Tokenizer& tokenizer);

/// The prompt after which a model writes what stands between two texts, BOS included where the
/// model asks for it. Control tokens that the texts spell out stay text. Throws Error{kUsage} where
/// the vocabulary has no tokens for it, and as Tokenizer::encode().
std::vector<int32_t> fill_in_prompt(const Tokenizer& tokenizer, std::string_view before,
                                    std::string_view after);

}  // namespace snapkv
