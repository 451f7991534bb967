// SPDX-License-Identifier: MIT
// TokenTrie: the tokens of a vocabulary as a tree of their bytes, so that tokens with the same
// beginning are examined together. It is made once per model.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/grammar/character_kinds.h"

namespace snapkv::grammar {

class TokenTrie {
 public:
  /// A token's bytes are those on the path to its node. Nodes are stored in the order of a walk:
  /// the nodes below a node follow it, up to `end`.
  struct Node {
    int32_t end = 0;     // the node after all nodes below this one
    int32_t tokens = 0;  // index into ids(); the range ends at the next node's
    uint16_t depth = 0;  // bytes from the root, whose depth is 0
    uint8_t byte = 0;
  };
  /// The texts on the paths from a node to the nodes below it. For a node that is the first byte of
  /// a longer character, the texts that begin with this character.
  struct Below {
    CharacterKinds kinds = 0;
    int32_t n_characters = 0;  // in the longest text
    int32_t n_before = 0;      // characters that begin on the path to the node, including its own
  };
  /// From this byte on, a byte is the first of a character of several bytes.
  static constexpr uint8_t kFirstOfMore = 0xc0;
  /// Longer tokens are left out. No vocabulary has one.
  static constexpr size_t kMostBytes = 4096;

  /// `pieces`: the tokens' bytes by id; empty ones and those that are too long get no node.
  explicit TokenTrie(const std::vector<std::string>& pieces);

  const Node& node(int32_t i) const { return nodes_[i]; }
  int32_t n_nodes() const { return static_cast<int32_t>(nodes_.size()) - 1; }
  /// The tokens whose bytes end at a node.
  std::span<const int32_t> ids(int32_t i) const { return ids(i, i + 1); }
  /// The tokens of the nodes [begin, end).
  std::span<const int32_t> ids(int32_t begin, int32_t end) const {
    return {ids_.data() + node(begin).tokens, ids_.data() + node(end).tokens};
  }
  const Below& below(int32_t i) const { return below_[i]; }
  /// The number of characters that begin in each of these tokens.
  std::span<const uint16_t> n_characters(int32_t begin, int32_t end) const {
    return {n_characters_.data() + node(begin).tokens, n_characters_.data() + node(end).tokens};
  }
  int depth() const { return depth_; }

 private:
  void find_below();
  void count_characters();
  /// The texts that begin with the byte of node `i`, which is outside ASCII.
  Below beginning_with(int32_t i) const;
  /// Adds the texts below node `i`, which begin with the remaining bytes `rest` of a character.
  void add_rest(int32_t i, std::span<const ByteSpan> rest, Below& below) const;

  std::vector<Node> nodes_;   // an extra one marks where the last one's tokens end
  std::vector<Below> below_;  // by node
  std::vector<int32_t> ids_;
  std::vector<uint16_t> n_characters_;  // parallel to ids_
  int depth_ = 0;
};

}  // namespace snapkv::grammar
