// SPDX-License-Identifier: MIT
// TokenTrie: the pieces of a vocabulary as a tree of bytes, so that tokens with the same beginning
// are looked at together. Made once per model, read by TokenMasks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

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
  /// Longer pieces are in no grammar's reach; no vocabulary has one.
  static constexpr size_t kMostBytes = 4096;

  /// `pieces`: by id; those that are empty or too long have no node.
  explicit TokenTrie(const std::vector<std::string>& pieces);

  const Node& node(int32_t i) const { return nodes_[static_cast<size_t>(i)]; }
  int32_t n_nodes() const { return static_cast<int32_t>(nodes_.size()) - 1; }
  /// The tokens whose bytes end at a node.
  std::span<const int32_t> ids(int32_t i) const {
    return {ids_.data() + node(i).tokens, ids_.data() + node(i + 1).tokens};
  }
  int depth() const { return depth_; }

 private:
  std::vector<Node> nodes_;  // and one more, where the last one's tokens end
  std::vector<int32_t> ids_;
  int depth_ = 0;
};

}  // namespace snapkv::grammar
