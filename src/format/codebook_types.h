// SPDX-License-Identifier: MIT
// The types of about one to three bits per weight: superblocks whose groups of 8 or 4 levels are
// entries of a codebook (ggml's "IQ" types but IQ4), and ternary ones. Their values are
//   kScaleUnit * d * scale * level
// where the scale belongs to 32 or 16 values (unpack_scales()) and levels are small integers:
// group(part, v) gives levels 8 v ... 8 v + 7 of a part as signed bytes, the first in the lowest.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/half.h"
#include "format/block_parts.h"
#include "format/codebooks.h"

namespace snapkv {

/// The levels of a superblock's part: value 8 v + i is byte i of word v.
using LevelWords = std::array<uint64_t, kBlockSize / 8>;

/// Changes the sign of the bytes, none of them 0, whose mask is 255.
constexpr uint64_t change_signs(uint64_t bytes, uint64_t masks) {
  return (bytes ^ masks) + (masks & 0x0101010101010101u);
}

/// The eight signs that seven bits stand for: the number of minus signs is even.
inline uint64_t even_signs(uint32_t bits) {
  bits &= 127;
  return codebooks::kByteMasks[bits | (std::popcount(bits) & 1u) << 7];
}

/// 2 k + 1 for the eight nibbles k of a word, the lowest first.
constexpr uint64_t odd_scales(uint32_t nibbles) {
  uint64_t x = nibbles;
  x = (x | x << 16) & 0x0000ffff0000ffffu;
  x = (x | x << 8) & 0x00ff00ff00ff00ffu;
  x = (x | x << 4) & kLowNibbles;
  return x << 1 | 0x0101010101010101u;
}

/// What these types have in common; B is the type itself.
template <typename B>
struct CodebookBlock {
  [[gnu::always_inline]] LevelWords part_words(int part) const {
    return {self().group(part, 0), self().group(part, 1), self().group(part, 2),
            self().group(part, 3)};
  }
  int level(int i) const {
    return static_cast<int8_t>(self().group(i / kBlockSize, i % kBlockSize / 8) >> (i % 8 * 8));
  }
  float value(int i) const {
    const int part = i / kBlockSize, half = i % kBlockSize / 16;
    return self().scale() * static_cast<float>(self().unpack_scales().scale(part, half)) *
           static_cast<float>(level(i));
  }

 private:
  const B& self() const { return *static_cast<const B*>(this); }
};

/// Each part has 8 bytes: four entries, then four times 7 bits of signs and a scale of 4 bits.
template <>
struct Block<DType::iq2_xxs> : CodebookBlock<Block<DType::iq2_xxs>> {
  f16_t d;
  uint8_t qs[kSuperblockParts][8];
  static constexpr float kScaleUnit = 0.125f;
  float scale() const { return to_f32(d) * kScaleUnit; }
  [[gnu::always_inline]] uint64_t group(int part, int v) const {
    const auto signs = load_word<uint32_t>(qs[part] + 4);
    return change_signs(codebooks::kIq2Xxs[qs[part][v]], even_signs(signs >> (7 * v)));
  }
  [[gnu::always_inline]] PartBytes unpack_scales() const {
    uint32_t nibbles = 0;
    for (int part = 0; part < kSuperblockParts; ++part) {
      nibbles |= static_cast<uint32_t>(qs[part][7] >> 4) << (4 * part);
    }
    return {.scales = odd_scales(nibbles), .mins = 0};
  }
};
using BlockIQ2_XXS = Block<DType::iq2_xxs>;

/// Each group has 16 bits: an entry in the lower 9, signs in the upper 7. A byte of scales has
/// those of a part's halves.
template <>
struct Block<DType::iq2_xs> : CodebookBlock<Block<DType::iq2_xs>> {
  f16_t d;
  uint16_t qs[kSuperblockParts][4];
  uint8_t scales[kSuperblockParts];
  static constexpr float kScaleUnit = 0.125f;
  float scale() const { return to_f32(d) * kScaleUnit; }
  [[gnu::always_inline]] uint64_t group(int part, int v) const {
    const uint32_t q = qs[part][v];
    return change_signs(codebooks::kIq2Xs[q & 511], even_signs(q >> 9));
  }
  [[gnu::always_inline]] HalfPartBytes unpack_scales() const {
    return {.scales = {odd_scales(load_word<uint32_t>(scales)),
                       odd_scales(load_word<uint32_t>(scales + 4))},
            .mins = {}};
  }
};
using BlockIQ2_XS = Block<DType::iq2_xs>;

/// A group's entry: its low 8 bits are a byte of qs, the high 2 those of its part's qh. Signs are a
/// byte for each group.
template <>
struct Block<DType::iq2_s> : CodebookBlock<Block<DType::iq2_s>> {
  f16_t d;
  uint8_t qs[kSuperblockParts][4];
  uint8_t signs[kSuperblockParts][4];
  uint8_t qh[kSuperblockParts];
  uint8_t scales[kSuperblockParts];
  static constexpr float kScaleUnit = 0.125f;
  float scale() const { return to_f32(d) * kScaleUnit; }
  [[gnu::always_inline]] uint64_t group(int part, int v) const {
    const uint32_t entry = qs[part][v] | (qh[part] >> (2 * v) & 3u) << 8;
    return change_signs(codebooks::kIq2S[entry], codebooks::kByteMasks[signs[part][v]]);
  }
  [[gnu::always_inline]] HalfPartBytes unpack_scales() const {
    return {.scales = {odd_scales(load_word<uint32_t>(scales)),
                       odd_scales(load_word<uint32_t>(scales + 4))},
            .mins = {}};
  }
};
using BlockIQ2_S = Block<DType::iq2_s>;

/// Groups of 4 values. Signs and scale are those of iq2_xxs.
template <>
struct Block<DType::iq3_xxs> : CodebookBlock<Block<DType::iq3_xxs>> {
  f16_t d;
  uint8_t qs[kSuperblockParts][8];
  uint8_t signs[kSuperblockParts][4];
  static constexpr float kScaleUnit = 0.25f;
  float scale() const { return to_f32(d) * kScaleUnit; }
  [[gnu::always_inline]] uint64_t group(int part, int v) const {
    const auto bits = load_word<uint32_t>(signs[part]);
    const uint64_t first = codebooks::kIq3Xxs[qs[part][2 * v]];
    const uint64_t second = codebooks::kIq3Xxs[qs[part][2 * v + 1]];
    return change_signs(first | second << 32, even_signs(bits >> (7 * v)));
  }
  [[gnu::always_inline]] PartBytes unpack_scales() const {
    uint32_t nibbles = 0;
    for (int part = 0; part < kSuperblockParts; ++part) {
      nibbles |= static_cast<uint32_t>(signs[part][3] >> 4) << (4 * part);
    }
    return {.scales = odd_scales(nibbles), .mins = 0};
  }
};
using BlockIQ3_XXS = Block<DType::iq3_xxs>;

/// Groups of 4 values; bit k of a part's qh is bit 8 of the part's entry k. Scales are nibbles.
template <>
struct Block<DType::iq3_s> : CodebookBlock<Block<DType::iq3_s>> {
  f16_t d;
  uint8_t qs[kSuperblockParts][8];
  uint8_t qh[kSuperblockParts];
  uint8_t signs[kSuperblockParts][4];
  uint8_t scales[kSuperblockParts / 2];
  float scale() const { return to_f32(d); }
  [[gnu::always_inline]] uint64_t group(int part, int v) const {
    const auto entry = [&](int k) -> uint64_t {
      return codebooks::kIq3S[qs[part][k] | (qh[part] >> k & 1u) << 8];
    };
    return change_signs(entry(2 * v) | entry(2 * v + 1) << 32,
                        codebooks::kByteMasks[signs[part][v]]);
  }
  [[gnu::always_inline]] PartBytes unpack_scales() const {
    return {.scales = odd_scales(load_word<uint32_t>(scales)), .mins = 0};
  }
};
using BlockIQ3_S = Block<DType::iq3_s>;

/// Levels are 8 g + 1 or, with the highest bit of the part's qh, 8 g - 1, where g is -1, 0 or 1.
/// The other bits of qh: three for each of four entries, as their high bits, then three of the scale.
template <>
struct Block<DType::iq1_s> : CodebookBlock<Block<DType::iq1_s>> {
  f16_t d;
  uint8_t qs[kSuperblockParts][4];
  uint16_t qh[kSuperblockParts];
  static constexpr float kScaleUnit = 0.125f;
  float scale() const { return to_f32(d) * kScaleUnit; }
  [[gnu::always_inline]] uint64_t group(int part, int v) const {
    const uint32_t high = qh[part], entry = qs[part][v] | (high >> (3 * v) & 7) << 8;
    // entries have 8 (g + 1)
    return subtract_from_bytes(codebooks::kIq1S[entry], high & 0x8000 ? 9 : 7);
  }
  [[gnu::always_inline]] PartBytes unpack_scales() const {
    uint64_t scales = 0;
    for (int part = 0; part < kSuperblockParts; ++part) {
      scales |= static_cast<uint64_t>((qh[part] >> 12 & 7) * 2 + 1) << (8 * part);
    }
    return {.scales = scales, .mins = 0};
  }
};
using BlockIQ1_S = Block<DType::iq1_s>;

/// As iq1_s, but each group has a sign of its own: a nibble of qh has an entry's three high bits and
/// that sign. The 16-bit words of scales have three bits for each half of two parts, and in their
/// highest four bits a quarter of d each, the lowest first.
template <>
struct Block<DType::iq1_m> : CodebookBlock<Block<DType::iq1_m>> {
  uint8_t qs[kSuperblockParts][4];
  uint8_t qh[kSuperblockParts][2];
  uint16_t scales[4];
  static constexpr float kScaleUnit = 0.125f;
  float scale() const {
    const auto bits = static_cast<uint16_t>(scales[0] >> 12 | (scales[1] >> 12) << 4 |
                                            (scales[2] >> 12) << 8 | (scales[3] >> 12) << 12);
    return to_f32(std::bit_cast<f16_t>(bits)) * kScaleUnit;
  }
  bool is_finite() const { return std::isfinite(scale()); }
  [[gnu::always_inline]] uint64_t group(int part, int v) const {
    const uint32_t nibble = qh[part][v / 2] >> (v % 2 * 4);
    const uint32_t entry = qs[part][v] | (nibble & 7) << 8;
    return subtract_from_bytes(codebooks::kIq1S[entry], nibble & 8 ? 9 : 7);
  }
  [[gnu::always_inline]] HalfPartBytes unpack_scales() const {
    HalfPartBytes bytes{};
    for (int k = 0; k < 2 * kSuperblockParts; ++k) {
      const uint64_t scale = (scales[k / 4] >> (k % 4 * 3) & 7) * 2 + 1;
      bytes.scales[k / 8] |= scale << (k % 8 * 8);
    }
    return bytes;
  }
};
using BlockIQ1_M = Block<DType::iq1_m>;

/// Ternary: a byte has five levels, as the first digits after the point of a number in base 3 times
/// 256. The first 32 bytes have values 32 n + i as their digits n, the next 16 bytes values 160 + 16
/// n + i, and qh four digits each, values 240 + 4 n + i.
template <>
struct Block<DType::tq1_0> : CodebookBlock<Block<DType::tq1_0>> {
  uint8_t qs[48];
  uint8_t qh[4];
  f16_t d;
  float scale() const { return to_f32(d); }
  [[gnu::always_inline]] uint64_t group(int part, int v) const {
    if (part < 5) return digits(load_word<uint64_t>(qs + 8 * v), part);
    if (part < 7 || v < 2) {
      return digits(load_word<uint64_t>(qs + 32 + v % 2 * 8), (part - 5) * 2 + v / 2);
    }
    const uint64_t bytes = load_word<uint32_t>(qh);
    return (digits(bytes, 2 * v - 4) & 0xffffffffu) | digits(bytes, 2 * v - 3) << 32;
  }
  [[gnu::always_inline]] HalfPartBytes unpack_scales() const {
    return {.scales = {0x0101010101010101u, 0x0101010101010101u}, .mins = {}};
  }

 private:
  /// Digit n of eight bytes, less 1.
  static constexpr uint64_t digits(uint64_t bytes, int n) {
    constexpr uint64_t kEven = 0x00ff00ff00ff00ffu;
    constexpr uint64_t kPowers[] = {1, 3, 9, 27, 81};
    const auto digit = [&](uint64_t x) { return ((x * kPowers[n] & kEven) * 3) >> 8 & kEven; };
    return subtract_from_bytes(digit(bytes & kEven) | digit(bytes >> 8 & kEven) << 8, 1);
  }
};
using BlockTQ1_0 = Block<DType::tq1_0>;

/// Ternary: two bits for each value, in the order of q2_k, less 1.
template <>
struct Block<DType::tq2_0> : CodebookBlock<Block<DType::tq2_0>> {
  uint8_t qs[kSuperblockSize / 4];
  f16_t d;
  float scale() const { return to_f32(d); }
  [[gnu::always_inline]] uint64_t group(int part, int v) const {
    const auto bytes = load_word<uint64_t>(qs + part / 4 * 32 + 8 * v) >> (part % 4 * 2);
    return subtract_from_bytes(bytes & 0x0303030303030303u, 1);
  }
  [[gnu::always_inline]] HalfPartBytes unpack_scales() const {
    return {.scales = {0x0101010101010101u, 0x0101010101010101u}, .mins = {}};
  }
};
using BlockTQ2_0 = Block<DType::tq2_0>;

}  // namespace snapkv
