// SPDX-License-Identifier: MIT
// TokenTrie: the pieces of a vocabulary as a tree of bytes, so that tokens with the same beginning
// are looked at together. Made once per model, read by TokenMasks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/grammar/character_kinds.h"

namespace snapkv::grammar {

class TokenTrie {
 public:
  /// The bytes of a token are those on the way to its node. Nodes are in the order in which a walk
  /// meets them: a node's children follow it, up to `end`.
  struct Node {
    int32_t end = 0;     // the node after all that is below this one
    int32_t tokens = 0;  // into ids(); up to the next node's
    uint16_t depth = 0;  // bytes from the root, which has 0
    uint8_t byte = 0;
  };
  /// What the texts from a node to the nodes below it are made of. Of a node that is the first of
  /// a character's bytes: the texts that begin with this character.
  struct Below {
    CharacterKinds kinds = 0;
    int32_t n_characters = 0;  // of the longest text
    int32_t n_before = 0;      // characters that begin on the way to the node, itself included
  };
  /// Bytes from this on are the first of a character's.
  static constexpr uint8_t kFirstOfMore = 0xc0;
  /// Longer pieces are in no grammar's reach; no vocabulary has one.
  static constexpr size_t kMostBytes = 4096;

  /// `pieces`: by id; those that are empty or too long have no node.
  explicit TokenTrie(const std::vector<std::string>& pieces);

  const Node& node(int32_t i) const { return nodes_[static_cast<size_t>(i)]; }
  int32_t n_nodes() const { return static_cast<int32_t>(nodes_.size()) - 1; }
  /// The tokens whose bytes end at a node.
  std::span<const int32_t> ids(int32_t i) const { return ids(i, i + 1); }
  /// Those of the nodes from `begin` to `end`.
  std::span<const int32_t> ids(int32_t begin, int32_t end) const {
    return {ids_.data() + node(begin).tokens, ids_.data() + node(end).tokens};
  }
  const Below& below(int32_t i) const { return below_[static_cast<size_t>(i)]; }
  /// Characters that begin in each of these tokens.
  std::span<const uint16_t> n_characters(int32_t begin, int32_t end) const {
    return {n_characters_.data() + node(begin).tokens, n_characters_.data() + node(end).tokens};
  }
  int depth() const { return depth_; }

 private:
  void find_below();
  void count_characters();
  /// What begins with the byte of node `i`, which is beyond ASCII.
  Below beginning_with(int32_t i) const;
  /// Adds to `below` what follows a character's first bytes at node `i`, of which `rest` is left.
  void add_rest(int32_t i, std::span<const ByteSpan> rest, Below& below) const;

  std::vector<Node> nodes_;   // and one more, where the last one's tokens end
  std::vector<Below> below_;  // by node
  std::vector<int32_t> ids_;
  std::vector<uint16_t> n_characters_;  // as ids_
  int depth_ = 0;
};

}  // namespace snapkv::grammar
