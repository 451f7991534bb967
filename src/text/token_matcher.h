// SPDX-License-Identifier: MIT
// TokenMatcher: finds all tokens that are spelled out in a text, in one pass whose time depends
// only on the text's length.
//
// It is the automaton of Aho and Corasick (1975) for the tokens spelled backwards, run over the
// text from its end, so that a state tells which tokens begin at a place rather than which end
// there. The tokens of one place form a chain from longer to shorter; jump pointers (Myers 1983)
// find the longest one that fits in logarithmic time, however many there are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace snapkv {

class TokenMatcher {
 public:
  struct Entry {
    std::string_view text;  // not empty, unique, outlives the constructor
    int32_t id;
  };
  /// A token of `length` bytes; a length of 0 means none.
  struct Found {
    int32_t id = -1;
    size_t length = 0;
  };
  /// A place where tokens begin; longest() tells which.
  struct Place {
    size_t begin;
    int32_t node;
  };

  TokenMatcher() = default;
  explicit TokenMatcher(std::vector<Entry> entries);

  /// All places in `text`, the last one first.
  std::vector<Place> find(std::string_view text) const;
  /// The longest token of a place with at most `max_bytes` bytes.
  Found longest(int32_t node, size_t max_bytes) const;

 private:
  struct Node {
    uint32_t first_edge = 0;  // its edges end at the next node's first
    int32_t fail = 0;         // the node of the longest proper suffix of this one's bytes
    int32_t found = -1;       // the node of the longest token that is such a suffix, or this node
    int32_t id = -1;          // the token that this node spells
    uint32_t length = 0;      // bytes that the node spells: its depth
    // For nodes that spell a token, in the tree where a token's parent is the next shorter one:
    int32_t shorter = -1;
    int32_t jump = -1;
    uint32_t level = 0;
  };
  void add_nodes(const std::vector<Entry>& sorted);
  void link();
  int32_t child(int32_t node, unsigned char byte) const;

  std::vector<Node> nodes_;  // level by level; an extra one marks the end of the last one's edges
  std::vector<unsigned char> bytes_;  // the edges' bytes
  std::vector<int32_t> targets_;
  std::array<int32_t, 256> of_root_{};
};

}  // namespace snapkv
