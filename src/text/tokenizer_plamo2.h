// SPDX-License-Identifier: MIT
// PlamoTokenizer: the tokenizer of PLaMo 2 (`tokenizer.ggml.model` = "plamo2"). Tokens are texts
// with scores, and a text becomes the tokens whose scores add up to the most; a character costs
// much that is spelled by the tokens of its bytes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_trie.h"
#include "text/split_tokenizer.h"

namespace snapkv {

class PlamoTokenizer final : public SplitTokenizer {
 public:
  explicit PlamoTokenizer(const GgufFile& file);

  std::string piece(int32_t id, bool special) const override;
  std::string description() const override { return "PLaMo 2"; }

 private:
  void index_tokens(const GgufFile& file);
  void index_bytes(const GgufFile& file);
  void encode_fragment(std::string_view text, bool after_special,
                       std::vector<int32_t>& out) const override;
  /// The best way to go on at a place of a text.
  struct Step {
    int64_t cost = 0;  // of all that follows
    int32_t id = -1;   // -1: the character's bytes
    uint32_t n_bytes = 0;
  };
  Step best_step(std::string_view text, size_t at, size_t n_character,
                 const std::vector<Step>& steps) const;

  std::vector<int32_t> scores_;  // [n_vocab]: 10000 times the file's, rounded
  ByteTrie trie_;                // of the tokens that a text may become
  std::array<int32_t, 256> byte_tokens_{};
};

}  // namespace snapkv
