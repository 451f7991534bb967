// SPDX-License-Identifier: MIT
// Layouts of GGUF's block types (little endian, as in the file): blocks of 32 values, and
// superblocks of 256 (the "K" types) whose parts have small integer scales of their own.
#pragma once

#include <cstdint>

#include "base/half.h"

namespace snapkv {

inline constexpr int kBlockSize = 32;
inline constexpr int kSuperblockSize = 256;
inline constexpr int kSuperblockParts = kSuperblockSize / kBlockSize;  // of 32 values: 8

/// value[i] = d * qs[i]
struct BlockQ8_0 {
  f16_t d;
  int8_t qs[kBlockSize];
};
static_assert(sizeof(BlockQ8_0) == 34);

/// value[i] = d * ((qs[i] & 15) - 8) for i < 16; value[16 + i] = d * ((qs[i] >> 4) - 8)
struct BlockQ4_0 {
  f16_t d;
  uint8_t qs[kBlockSize / 2];
};
static_assert(sizeof(BlockQ4_0) == 18);

/// What a q4_k or q5_k superblock begins with: scales and minima of its 8 parts, 6 bits each:
///   part j < 4: scale in bits 0 ... 5 of byte j, minimum in bits 0 ... 5 of byte 4 + j
///   part 4 + j: the low 4 bits of the scale in bits 0 ... 3 of byte 8 + j, of the minimum in its
///   bits 4 ... 7; their high 2 bits in bits 6, 7 of byte j and of byte 4 + j
struct PartScales {
  f16_t d;
  f16_t dmin;
  uint8_t bytes[12];
  constexpr int scale(int part) const {
    return part < 4 ? bytes[part] & 63 : (bytes[4 + part] & 15) | (bytes[part - 4] >> 6 << 4);
  }
  constexpr int min(int part) const {
    return part < 4 ? bytes[4 + part] & 63 : (bytes[4 + part] >> 4) | (bytes[part] >> 6 << 4);
  }
};
static_assert(sizeof(PartScales) == 16);

/// value[32 j + i] = d * scale(j) * q - dmin * min(j), q the low (j even) or high nibble (j odd) of
/// qs[32 (j / 2) + i]
struct BlockQ4_K {
  PartScales scales;
  uint8_t qs[kSuperblockSize / 2];
  constexpr int level(int i) const { return (qs[i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4)) & 15; }
};
static_assert(sizeof(BlockQ4_K) == 144);

/// As BlockQ4_K; bit j of qh[i] is bit 4 of q.
struct BlockQ5_K {
  PartScales scales;
  uint8_t qh[kBlockSize];
  uint8_t qs[kSuperblockSize / 2];
  constexpr int level(int i) const {
    const int low = (qs[i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4)) & 15;
    return low | ((qh[i % 32] >> (i / 32)) & 1) << 4;
  }
};
static_assert(sizeof(BlockQ5_K) == 176);

/// value[i] = d * scales[i / 16] * (q - 32). Each half of 128 values has 64 bytes of ql and 32 of
/// qh; its value 32 k + i (k < 4, i < 32) takes the low 4 bits of q from the low (k < 2) or high
/// nibble of ql[32 (k % 2) + i], and the high 2 from bits 2 k, 2 k + 1 of qh[i].
struct BlockQ6_K {
  uint8_t ql[kSuperblockSize / 2];
  uint8_t qh[kSuperblockSize / 4];
  int8_t scales[kSuperblockSize / 16];
  f16_t d;
  constexpr int level(int i) const {
    const int half = i / 128, k = i / 32 % 4;
    const int low = (ql[64 * half + 32 * (k % 2) + i % 32] >> (k / 2 * 4)) & 15;
    const int high = (qh[32 * half + i % 32] >> (2 * k)) & 3;
    return (low | high << 4) - 32;
  }
};
static_assert(sizeof(BlockQ6_K) == 210);

}  // namespace snapkv
