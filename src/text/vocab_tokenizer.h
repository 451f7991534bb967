// SPDX-License-Identifier: MIT
// VocabTokenizer: the answers that all tokenizers give in the same way, from their Vocab.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "snapkv/tokenizer.h"
#include "text/vocab.h"

namespace snapkv {

/// Longer texts are refused: lengths and token ids are 32-bit numbers inside.
inline constexpr size_t kMaxTextBytes = size_t{1} << 30;
/// Throws Error{kRuntime} for a longer text.
void check_text_length(std::string_view text);

class VocabTokenizer : public Tokenizer {
 public:
  std::string decode(std::span<const int32_t> ids, bool special) const override;
  int64_t n_vocab() const override { return vocab_.size(); }
  const std::string& token_text(int32_t id) const override {
    vocab_.check(id);
    return vocab_.tokens[id];
  }
  int32_t find(std::string_view token_text) const override { return vocab_.find(token_text); }
  bool is_control(int32_t id) const override {
    return vocab_.contains(id) && vocab_.is_special(id);
  }
  const SpecialTokens& special() const override { return vocab_.special; }
  bool is_end_of_generation(int32_t id) const override { return vocab_.is_end(id); }
  const FillInTokens& fill_in() const { return vocab_.fill_in; }

 protected:
  explicit VocabTokenizer(Vocab vocab) : vocab_(std::move(vocab)) {}
  /// Whether piece() returns nothing for the token.
  bool is_hidden(int32_t id, bool special) const {
    return !special && vocab_.is_special(id) && !vocab_.visible[id];
  }

  Vocab vocab_;
};

}  // namespace snapkv
