// SPDX-License-Identifier: MIT
// RwkvTokenizer: the "World" tokenizer of RWKV (`tokenizer.ggml.model` = "rwkv"). A text is cut
// from its beginning on, each time at the longest token that it continues with. Tokens are any
// bytes, and the file spells them with escapes: "\n", "\x81".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_trie.h"
#include "text/split_tokenizer.h"

namespace snapkv {

class RwkvTokenizer final : public SplitTokenizer {
 public:
  explicit RwkvTokenizer(const GgufFile& file);

  std::string piece(int32_t id, bool special) const override;
  std::string description() const override { return "RWKV World"; }

 private:
  void unescape_tokens(const GgufFile& file);
  void check_bytes(const GgufFile& file) const;
  void encode_fragment(std::string_view text, bool after_special,
                       std::vector<int32_t>& out) const override;

  std::vector<std::string> bytes_;  // [n_vocab]: what tokens stand for
  ByteTrie trie_;                   // of those that texts may contain
};

}  // namespace snapkv
