// SPDX-License-Identifier: MIT
// TokenMatcher: finds tokens that are spelled out in a text, all of them in one pass whose time
// depends on the text's length alone. SpecialSplitter and AddedTokens cut texts with it.
//
// It is the automaton of Aho and Corasick (1975), of the tokens spelled backwards and run over the
// text from its end, so that a state knows the tokens that begin at a place and not those that end
// there. Longer and shorter tokens of one place form a chain; jump pointers (Myers 1983) find the
// longest that fits in logarithmic time, however many there are.
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
    std::string_view text;  // not empty, distinct from all others, outlives the constructor
    int32_t id;
  };
  /// A token of `length` bytes; 0 for none.
  struct Found {
    int32_t id = -1;
    size_t length = 0;
  };
  /// A place where tokens begin; longest() says which.
  struct Place {
    size_t begin;
    int32_t node;
  };

  TokenMatcher() = default;
  explicit TokenMatcher(std::vector<Entry> entries);

  /// All places of `text`, last one first.
  std::vector<Place> find(std::string_view text) const;
  /// The longest of a place's tokens that has at most `max_bytes` bytes.
  Found longest(int32_t node, size_t max_bytes) const;

 private:
  struct Node {
    uint32_t first_edge = 0;  // edges up to the next node's first
    int32_t fail = 0;         // the node of the longest proper suffix of this one's bytes
    int32_t found = -1;       // the node of the longest token that is such a suffix or all of it
    int32_t id = -1;          // of the token that this node spells
    uint32_t length = 0;      // of it in bytes: the node's depth
    // Of nodes that spell a token, in the tree whose parents are the next shorter tokens:
    int32_t shorter = -1;
    int32_t jump = -1;
    uint32_t level = 0;
  };
  void add_nodes(const std::vector<Entry>& sorted);
  void link();
  int32_t child(int32_t node, unsigned char byte) const;

  std::vector<Node> nodes_;  // level by level; one more, for the end of the last one's edges
  std::vector<unsigned char> bytes_;  // of the edges
  std::vector<int32_t> targets_;
  std::array<int32_t, 256> of_root_{};
};

}  // namespace snapkv
