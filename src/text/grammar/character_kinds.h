// SPDX-License-Identifier: MIT
// CharacterKinds: characters by kind, as bits: letters are a few kinds, each punctuation mark is
// one of its own. What a trie knows of the texts below a node and what a set of stacks knows of the
// texts that it allows are compared in one operation (TokenTrie, StateSets, TokenMasks).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "text/grammar/char_set.h"

namespace snapkv::grammar {

/// A bit for each kind.
using CharacterKinds = uint64_t;

namespace kinds {

inline constexpr int kLower = 0, kUpper = 1, kDigit = 2, kControl = 3;
/// Characters of 2, 3 and 4 bytes in UTF-8.
inline constexpr int kTwoBytes = 4;
/// Bytes that spell no character where they are.
inline constexpr int kIllFormed = 7;
inline constexpr int kFirstOfOneCharacter = 8;

/// The kind of each ASCII character. Tabs and line breaks are kinds of their own.
inline constexpr std::array<uint8_t, 128> kOfAscii = [] {
  std::array<uint8_t, 128> all = {};
  int next = kFirstOfOneCharacter;
  for (int c = 0; c < 128; ++c) {
    int kind = 0;
    if (c >= 'a' && c <= 'z') {
      kind = kLower;
    } else if (c >= 'A' && c <= 'Z') {
      kind = kUpper;
    } else if (c >= '0' && c <= '9') {
      kind = kDigit;
    } else if (c < 0x20 && c != '\t' && c != '\n' && c != '\r') {
      kind = kControl;
    } else {
      kind = next++;
    }
    all[static_cast<size_t>(c)] = static_cast<uint8_t>(kind);
  }
  return all;
}();
inline constexpr int kNumber = kOfAscii[0x7f] + 1;
static_assert(kNumber <= 64);

inline constexpr CharacterKinds bit(int kind) { return CharacterKinds{1} << kind; }
/// Of characters that are not ASCII.
inline constexpr int of_length(int n_bytes) { return kTwoBytes + n_bytes - 2; }

/// All of those, and what is no character.
inline constexpr CharacterKinds kBeyondAscii =
    bit(kTwoBytes) | bit(kTwoBytes + 1) | bit(kTwoBytes + 2) | bit(kIllFormed);

/// How UTF-8 spells the characters that are not ASCII.
inline const std::vector<ByteSequence>& beyond_ascii() {
  static const std::vector<ByteSequence> sequences = [] {
    CharSet set;
    set.add(0x80, kMostCodePoint);
    return set.byte_sequences();
  }();
  return sequences;
}

}  // namespace kinds
}  // namespace snapkv::grammar
