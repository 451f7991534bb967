// SPDX-License-Identifier: MIT
// ByteTrie: the tokens of a vocabulary by their bytes, to find those with which a text begins.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace snapkv {

class ByteTrie {
 public:
  struct Entry {
    std::string_view bytes;  // not empty
    int32_t id = -1;
  };
  ByteTrie() = default;
  /// Of several entries with the same bytes the one with the highest id counts.
  explicit ByteTrie(std::vector<Entry> entries);

  /// The token that is this one byte; -1 if there is none.
  int32_t find(unsigned char byte) const {
    return of_root_[byte] >= 0 ? nodes_[of_root_[byte]].id : -1;
  }
  /// Calls found(id, n_bytes) for each token with which `text` begins, shorter ones first.
  template <typename Found>
  void for_each_prefix(std::string_view text, const Found& found) const {
    if (text.empty()) return;
    int32_t node = of_root_[static_cast<unsigned char>(text[0])];
    for (size_t n = 1; node >= 0; ++n) {
      if (nodes_[node].id >= 0) found(nodes_[node].id, n);
      if (n == text.size()) return;
      node = child(node, static_cast<unsigned char>(text[n]));
    }
  }

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
  int32_t child(int32_t node, unsigned char byte) const;

  std::vector<Node> nodes_;  // level by level; an extra one ends the last one's edges
  std::vector<Edge> edges_;  // of each node in the order of the bytes
  std::array<int32_t, 256> of_root_{};
};

}  // namespace snapkv
