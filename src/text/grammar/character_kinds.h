// SPDX-License-Identifier: MIT
// CharacterKinds: a set of kinds of characters, as bits. Letters form a few kinds; each punctuation
// mark is a kind of its own, and so is each part of Unicode that a grammar is likely to treat
// alike. One operation then compares what a trie knows about the texts below a node with what a set
// of stacks knows about the texts that it allows (TokenTrie, StateSets, TokenMasks).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "text/grammar/char_set.h"

namespace snapkv::grammar {

/// One bit per kind.
using CharacterKinds = uint64_t;

namespace kinds {

inline constexpr int kLower = 0, kUpper = 1, kDigit = 2, kControl = 3;
/// Bytes that do not spell a character where they stand.
inline constexpr int kIllFormed = 4;
/// The first of the kinds for kPartsBeyondAscii, in their order.
inline constexpr int kFirstBeyondAscii = 5;
/// The last character of each part of Unicode; a part begins after the end of the one before it.
/// Characters that are letters in no script are in separate parts where possible: spaces are in the
/// first, U+2000 and U+3000. No first byte belongs to two parts.
inline constexpr std::array<uint32_t, 13> kPartsBeyondAscii = {
    0xff,   0x2ff,  0x3ff,  0x4ff,  0x7ff,  0xfff,         0x1fff,
    0x2fff, 0x3fff, 0x9fff, 0xdfff, 0xffff, kMostCodePoint};
inline constexpr int kFirstOfOneCharacter =
    kFirstBeyondAscii + static_cast<int>(kPartsBeyondAscii.size());

/// The kind of each ASCII character. The tab and line breaks have kinds of their own.
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

/// All characters outside ASCII, and bytes that do not spell a character.
inline constexpr CharacterKinds kBeyondAscii = bit(kFirstOfOneCharacter) - bit(kIllFormed);

struct SpelledKind {
  ByteSequence spelling;
  int kind = 0;
};
/// How the characters outside ASCII are spelled in UTF-8.
inline const std::vector<SpelledKind>& beyond_ascii() {
  static const std::vector<SpelledKind> all = [] {
    std::vector<SpelledKind> spelled;
    uint32_t first = 0x80;
    for (size_t part = 0; part < kPartsBeyondAscii.size(); ++part) {
      CharSet set;
      set.add(first, kPartsBeyondAscii[part]);
      first = kPartsBeyondAscii[part] + 1;
      for (const ByteSequence& spelling : set.byte_sequences()) {
        spelled.push_back({spelling, kFirstBeyondAscii + static_cast<int>(part)});
      }
    }
    return spelled;
  }();
  return all;
}

}  // namespace kinds
}  // namespace snapkv::grammar
