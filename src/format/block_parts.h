// SPDX-License-Identifier: MIT
// What the block types of block_types.h have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "snapkv/dtype.h"

namespace snapkv {

inline constexpr int kBlockSize = 32;
inline constexpr int kSuperblockSize = 256;
inline constexpr int kSuperblockParts = kSuperblockSize / kBlockSize;  // of 32 values: 8

template <DType T>
struct Block;

/// The integer scales and minima of a superblock's 8 parts, all at once, as kernels need them. Byte
/// j, counted from the lowest, belongs to part j.
struct PartBytes {
  uint64_t scales;
  uint64_t mins;  // 0 if the type has none
  constexpr int scale(int part) const { return static_cast<int8_t>(scales >> (8 * part)); }
  constexpr int min(int part) const { return static_cast<int8_t>(mins >> (8 * part)); }
  /// The same for both halves of a part.
  constexpr int scale(int part, int) const { return scale(part); }
  constexpr int min(int part, int) const { return min(part); }
};

/// Same for types in which a scale belongs to 16 values: byte 2 j + h belongs to half h of part j.
struct HalfPartBytes {
  uint64_t scales[2];
  uint64_t mins[2];  // 0 if the type has none
  constexpr int scale(int part, int half) const { return byte(scales, part, half); }
  constexpr int min(int part, int half) const { return byte(mins, part, half); }

 private:
  static constexpr int byte(const uint64_t (&bytes)[2], int part, int half) {
    return static_cast<int8_t>(bytes[part / 4] >> (part % 4 * 16 + half * 8));
  }
};

/// Subtracts `by` from each byte. All bytes are below 128, so no borrow crosses a byte.
constexpr uint64_t subtract_from_bytes(uint64_t bytes, uint8_t by) {
  constexpr uint64_t kOnes = 0x0101010101010101u, kSigns = 0x8080808080808080u;
  return ((bytes | kSigns) - kOnes * by) ^ kSigns;
}

template <typename Word>
[[gnu::always_inline]] inline Word load_word(const void* p) {
  Word word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

inline constexpr uint64_t kLowNibbles = 0x0f0f0f0f0f0f0f0fu;

}  // namespace snapkv
