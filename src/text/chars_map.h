// SPDX-License-Identifier: MIT
// CharsMap: SentencePiece's table of replacements ("precompiled charsmap"), with which Unigram
// vocabularies normalize texts.
//
// Layout (little endian): u32 size of the trie in bytes, the trie, the replacements, each ended by
// a zero byte. The trie is a double array of u32: a node's children are at node ^ base ^ byte.
//   bits 0-7    the byte that leads to the node
//   bit 8       set if a replacement belongs to the node
//   bit 9       set if base is shifted left by 8 more bits
//   bits 10-31  base
//   bit 31      set in a node that holds the place of a replacement instead, in bits 0-30
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
  /// Throws Error{kBadModel} with a message that begins with `origin` if the sizes do not fit.
  CharsMap(std::string_view bytes, std::string origin);

  struct Replacement {
    std::string_view text;
    size_t length = 0;  // bytes of the text that it replaces; 0: nothing is replaced
  };
  /// The replacement for the longest prefix of `text` that is in the table. Throws as the
  /// constructor does if the table points outside itself.
  Replacement find(std::string_view text) const;

 private:
  uint32_t node(size_t index) const;

  std::string origin_;
  std::vector<uint32_t> trie_;
  std::string replacements_;
};

}  // namespace snapkv
