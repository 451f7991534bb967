// SPDX-License-Identifier: MIT
// RwkvTokenizer: the "World" tokenizer of RWKV (`tokenizer.ggml.model` = "rwkv"). A text is cut
// from its beginning on, each time at the longest token that it continues with. Tokens are any
// bytes, and the file spells them with escapes: "\n", "\x81".
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/split_tokenizer.h"

namespace snapkv {

class RwkvTokenizer final : public SplitTokenizer {
 public:
  explicit RwkvTokenizer(const GgufFile& file);

  std::string piece(int32_t id, bool special) const override;
  std::string description() const override { return "RWKV World"; }

 private:
  /// A prefix of tokens. Its continuations by one byte are edges [first_edge, the next node's).
  struct Node {
    uint32_t first_edge = 0;
    int32_t id = -1;  // the token that it spells
  };
  struct Edge {
    unsigned char byte = 0;
    int32_t node = -1;
  };
  struct Entry {
    std::string_view bytes;
    int32_t id = -1;
  };

  void unescape_tokens(const GgufFile& file);
  void build_trie(std::vector<Entry> entries);
  void check_bytes(const GgufFile& file) const;
  int32_t child(int32_t node, unsigned char byte) const;
  void encode_fragment(std::string_view text, bool after_special,
                       std::vector<int32_t>& out) const override;

  std::vector<std::string> bytes_;  // [n_vocab]: what tokens stand for
  std::vector<Node> nodes_;         // level by level; an extra one ends the last one's edges
  std::vector<Edge> edges_;         // of each node in the order of the bytes
  std::array<int32_t, 256> of_root_{};
};

}  // namespace snapkv
