// SPDX-License-Identifier: MIT
// CharsMap: SentencePiece's table of replacements ("precompiled charsmap"), with which Unigram
// vocabularies normalize texts. UnigramTokenizer uses it.
//
// Layout (little endian): u32 size of the trie in bytes, the trie, replacements that end in zero
// bytes. The trie is a double array of u32: a node's children are at node ^ base ^ byte.
//   bits 0-7    the byte that leads to the node     bit 8   a replacement belongs to the node
//   bits 10-31  base, shifted by 8 more if bit 9    bit 31  set in a node that holds a
//   replacement's
//               is set                                      place instead: bits 0-30
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace snapkv {

class CharsMap {
 public:
  CharsMap() = default;
  /// Throws Error{kBadModel} that begins with `origin` when sizes do not fit.
  CharsMap(std::string_view bytes, std::string origin);

  struct Replacement {
    std::string_view text;
    size_t length = 0;  // of what it replaces; 0: nothing is replaced
  };
  /// For the longest beginning of `text` that the table has. Throws as the constructor when the
  /// table leads outside of itself.
  Replacement find(std::string_view text) const;

 private:
  uint32_t node(size_t index) const;

  std::string origin_;
  std::vector<uint32_t> trie_;
  std::string replacements_;
};

}  // namespace snapkv
