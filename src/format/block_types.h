// SPDX-License-Identifier: MIT
// The types of weights as they lie in memory and in GGUF files (little endian). Every DType that
// weights may have has a Block<T>, whose value(i) is the specification for ref/ and all tests.
// visit_weight_type() chooses the code of a template by type.
//
// Plain types are blocks of one value. The block types have blocks of 32 values, blocks of 64 with
// four scales (nvfp4), or superblocks of 256 (the "K" types, and those of codebook_types.h) whose
// parts have small integer scales of their own. value(i) has exactly the bits of ggml's f32 result:
// all products are exact in f32, and subtracting a minimum rounds once.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/half.h"
#include "format/block_parts.h"
#include "format/codebook_types.h"
#include "snapkv/dtype.h"

namespace snapkv {

// ---------------------------------------------------------------- plain types

template <typename Element>
struct PlainBlock {
  Element element;
  float value(int) const { return to_f32(element); }
};
template <>
struct Block<DType::f32> : PlainBlock<float> {};
template <>
struct Block<DType::f16> : PlainBlock<f16_t> {};
template <>
struct Block<DType::bf16> : PlainBlock<bf16_t> {};

// ---------------------------------------------------------------- blocks of 32 values

template <>
struct Block<DType::q8_0> {
  f16_t d;
  int8_t qs[kBlockSize];
  float value(int i) const { return to_f32(d) * qs[i]; }
};
using BlockQ8_0 = Block<DType::q8_0>;

/// The low nibbles of qs are values 0 ... 15, the high ones 16 ... 31.
template <>
struct Block<DType::q4_0> {
  f16_t d;
  uint8_t qs[kBlockSize / 2];
  constexpr int level(int i) const { return ((qs[i % 16] >> (i / 16 * 4)) & 15) - 8; }
  float value(int i) const { return to_f32(d) * static_cast<float>(level(i)); }
};
using BlockQ4_0 = Block<DType::q4_0>;

/// As q4_0, but levels begin at 0: value = d * level + m.
template <>
struct Block<DType::q4_1> {
  f16_t d;
  f16_t m;
  uint8_t qs[kBlockSize / 2];
  constexpr int level(int i) const { return (qs[i % 16] >> (i / 16 * 4)) & 15; }
  float value(int i) const { return to_f32(d) * static_cast<float>(level(i)) + to_f32(m); }
};
using BlockQ4_1 = Block<DType::q4_1>;

/// As q4_0; bit i of qh, counted from the lowest of byte 0, is bit 4 of value i's level.
template <>
struct Block<DType::q5_0> {
  f16_t d;
  uint8_t qh[kBlockSize / 8];
  uint8_t qs[kBlockSize / 2];
  constexpr int level(int i) const {
    const int low = (qs[i % 16] >> (i / 16 * 4)) & 15;
    return (low | ((qh[i / 8] >> (i % 8)) & 1) << 4) - 16;
  }
  float value(int i) const { return to_f32(d) * static_cast<float>(level(i)); }
};
using BlockQ5_0 = Block<DType::q5_0>;

/// As q4_1; bit i of qh is bit 4 of value i's level, as in q5_0.
template <>
struct Block<DType::q5_1> {
  f16_t d;
  f16_t m;
  uint8_t qh[kBlockSize / 8];
  uint8_t qs[kBlockSize / 2];
  constexpr int level(int i) const {
    const int low = (qs[i % 16] >> (i / 16 * 4)) & 15;
    return low | ((qh[i / 8] >> (i % 8)) & 1) << 4;
  }
  float value(int i) const { return to_f32(d) * static_cast<float>(level(i)) + to_f32(m); }
};
using BlockQ5_1 = Block<DType::q5_1>;

/// As q4_0, but nibbles are indices into a table of levels that are closer together near 0.
template <>
struct Block<DType::iq4_nl> {
  f16_t d;
  uint8_t qs[kBlockSize / 2];
  alignas(16) static constexpr int8_t kLevels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                     1,    13,   25,  38,  53,  69,  89,  113};
  constexpr int level(int i) const { return kLevels[(qs[i % 16] >> (i / 16 * 4)) & 15]; }
  float value(int i) const { return to_f32(d) * static_cast<float>(level(i)); }
};
using BlockIQ4_NL = Block<DType::iq4_nl>;

/// MXFP4 of the Open Compute Project's microscaling formats: nibbles are FP4 (E2M1) numbers, the
/// scale is a power of two. The table has the numbers doubled, so that they are integers, and the
/// scale is half that of the format: 2^(e - 128), which is subnormal for e < 2.
template <>
struct Block<DType::mxfp4> {
  uint8_t e;
  uint8_t qs[kBlockSize / 2];
  alignas(16) static constexpr int8_t kLevels[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                                     0, -1, -2, -3, -4, -6, -8, -12};
  static constexpr float scale(uint32_t e) {
    return std::bit_cast<float>(e < 2 ? 0x00200000u << e : (e - 1) << 23);
  }
  constexpr int level(int i) const { return kLevels[(qs[i % 16] >> (i / 16 * 4)) & 15]; }
  float value(int i) const { return scale(e) * static_cast<float>(level(i)); }
  /// The exponent 255 means NaN, which ggml rejects too; 253 and 254 overflow with some levels.
  bool is_finite() const {
    if (e < 253) return true;
    bool finite = e != 255;
    for (int i = 0; i < kBlockSize; ++i) finite = finite && std::isfinite(value(i));
    return finite;
  }
};
using BlockMXFP4 = Block<DType::mxfp4>;

// ---------------------------------------------------------------- blocks of 64 values

/// NVFP4: FP4 (E2M1) numbers as in mxfp4, doubled, with a scale for each 16 values. Of values 16 k
/// ... 16 k + 15 the first 8 are the low nibbles of qs[8 k] ... qs[8 k + 7], the others the high
/// ones. Scales are E4M3 numbers (4 bits of exponent with bias 7, 3 of mantissa), halved because of
/// the doubled levels. ggml ignores their sign, and takes the code of NaN, 0x7f, for 0.
template <>
struct Block<DType::nvfp4> {
  static constexpr int kScaleValues = 16, kScales = 4;
  uint8_t scales[kScales];
  uint8_t qs[kScales * kScaleValues / 2];
  static float scale(uint8_t e4m3) {
    if (e4m3 == 0x7f) return 0.0f;
    // an f16 number has a bias of 15: 2^-8 of the scale, and 2^-7 of its half
    return to_f32(f16_t{static_cast<uint16_t>((e4m3 & 0x7f) << 7)}) * 128.0f;
  }
  constexpr int level(int i) const {
    const int nibbles = qs[i / kScaleValues * 8 + i % 8];
    return BlockMXFP4::kLevels[nibbles >> (i / 8 % 2 * 4) & 15];
  }
  float value(int i) const {
    return scale(scales[i / kScaleValues]) * static_cast<float>(level(i));
  }
  bool is_finite() const { return true; }
};
using BlockNVFP4 = Block<DType::nvfp4>;

// ---------------------------------------------------------------- superblocks


/// value[i] = d * (scales[i / 16] & 15) * level - dmin * (scales[i / 16] >> 4). Levels 128 h + 32 j
/// + i (h < 2, j < 4, i < 32) are bits 2 j and 2 j + 1 of qs[32 h + i].
template <>
struct Block<DType::q2_k> {
  uint8_t scales[kSuperblockSize / 16];
  uint8_t qs[kSuperblockSize / 4];
  f16_t d;
  f16_t dmin;
  constexpr int level(int i) const { return (qs[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2)) & 3; }
  float value(int i) const {
    const int scale = scales[i / 16] & 15, min = scales[i / 16] >> 4;
    return to_f32(d) * static_cast<float>(scale) * static_cast<float>(level(i)) -
           to_f32(dmin) * static_cast<float>(min);
  }
  [[gnu::always_inline]] HalfPartBytes unpack_scales() const {
    const auto first = load_word<uint64_t>(scales), last = load_word<uint64_t>(scales + 8);
    return {.scales = {first & kLowNibbles, last & kLowNibbles},
            .mins = {first >> 4 & kLowNibbles, last >> 4 & kLowNibbles}};
  }
};
using BlockQ2_K = Block<DType::q2_k>;

/// value[i] = d * scale(i / 16) * level. The low 2 bits of level + 4 are as in q2_k, bit 2 of level
/// 32 j + i is bit j of hmask[i]. Scale k: its low 4 bits are the low (k < 8) or high nibble of
/// byte k % 8, its high 2 are bits 2 (k / 4) and 2 (k / 4) + 1 of byte 8 + k % 4; less 32.
template <>
struct Block<DType::q3_k> {
  uint8_t hmask[kBlockSize];
  uint8_t qs[kSuperblockSize / 4];
  uint8_t scales[12];
  f16_t d;
  constexpr int scale(int k) const {
    const int low = (scales[k % 8] >> (k / 8 * 4)) & 15;
    return (low | ((scales[8 + k % 4] >> (k / 4 * 2)) & 3) << 4) - 32;
  }
  constexpr int level(int i) const {
    const int low = (qs[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2)) & 3;
    return (low | ((hmask[i % 32] >> (i / 32)) & 1) << 2) - 4;
  }
  float value(int i) const {
    return to_f32(d) * static_cast<float>(scale(i / 16)) * static_cast<float>(level(i));
  }
  [[gnu::always_inline]] HalfPartBytes unpack_scales() const {
    const auto low = load_word<uint64_t>(scales);
    const auto high = load_word<uint32_t>(scales + 8);
    const auto pairs = [](uint32_t x) { return (x & 0x03030303u) << 4; };
    const uint64_t first = (low & kLowNibbles) | pairs(high) | uint64_t{pairs(high >> 2)} << 32;
    const uint64_t last =
        (low >> 4 & kLowNibbles) | pairs(high >> 4) | uint64_t{pairs(high >> 6)} << 32;
    return {.scales = {subtract_from_bytes(first, 32), subtract_from_bytes(last, 32)}, .mins = {}};
  }
};
using BlockQ3_K = Block<DType::q3_k>;

/// Header of a q4_k or q5_k superblock: scales and minima of its 8 parts, 6 bits each:
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
  /// d * scale(part) * level - dmin * min(part) for the part that contains value i.
  float value(int i, int level) const {
    const int part = i / kBlockSize;
    return to_f32(d) * static_cast<float>(scale(part)) * static_cast<float>(level) -
           to_f32(dmin) * static_cast<float>(min(part));
  }
  [[gnu::always_inline]] PartBytes unpack() const {
    const auto a = load_word<uint32_t>(bytes);
    const auto b = load_word<uint32_t>(bytes + 4);
    const auto c = load_word<uint32_t>(bytes + 8);
    const uint32_t scales_high = (c & 0x0f0f0f0fu) | (a >> 2 & 0x30303030u);
    const uint32_t mins_high = (c >> 4 & 0x0f0f0f0fu) | (b >> 2 & 0x30303030u);
    return {.scales = (a & 0x3f3f3f3fu) | uint64_t{scales_high} << 32,
            .mins = (b & 0x3f3f3f3fu) | uint64_t{mins_high} << 32};
  }
};
static_assert(sizeof(PartScales) == 16);

/// Levels 32 j + i are the low (j even) or high nibbles (j odd) of qs[32 (j / 2) + i].
template <>
struct Block<DType::q4_k> {
  PartScales scales;
  uint8_t qs[kSuperblockSize / 2];
  constexpr int level(int i) const { return (qs[i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4)) & 15; }
  float value(int i) const { return scales.value(i, level(i)); }
  [[gnu::always_inline]] PartBytes unpack_scales() const { return scales.unpack(); }
};
using BlockQ4_K = Block<DType::q4_k>;

/// As q4_k; bit j of qh[i] is bit 4 of level 32 j + i.
template <>
struct Block<DType::q5_k> {
  PartScales scales;
  uint8_t qh[kBlockSize];
  uint8_t qs[kSuperblockSize / 2];
  constexpr int level(int i) const {
    const int low = (qs[i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4)) & 15;
    return low | ((qh[i % 32] >> (i / 32)) & 1) << 4;
  }
  float value(int i) const { return scales.value(i, level(i)); }
  [[gnu::always_inline]] PartBytes unpack_scales() const { return scales.unpack(); }
};
using BlockQ5_K = Block<DType::q5_k>;

/// value[i] = d * scales[i / 16] * (q - 32). Each half of 128 values has 64 bytes of ql and 32 of
/// qh; its value 32 k + i (k < 4, i < 32) takes the low 4 bits of q from the low (k < 2) or high
/// nibble of ql[32 (k % 2) + i], and the high 2 from bits 2 k, 2 k + 1 of qh[i].
template <>
struct Block<DType::q6_k> {
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
  float value(int i) const { return to_f32(d) * scales[i / 16] * static_cast<float>(level(i)); }
  [[gnu::always_inline]] HalfPartBytes unpack_scales() const {
    return {.scales = {load_word<uint64_t>(scales), load_word<uint64_t>(scales + 8)}, .mins = {}};
  }
};
using BlockQ6_K = Block<DType::q6_k>;

/// Eight iq4_nl blocks with integer scales: value[i] = d * scale(i / 32) * level. The low 4 bits of
/// scale(j) + 32 are the low (j even) or high nibble of scales_l[j / 2], the high 2 are bits 2 j
/// and 2 j + 1 of scales_h.
template <>
struct Block<DType::iq4_xs> {
  f16_t d;
  uint16_t scales_h;
  uint8_t scales_l[kSuperblockParts / 2];
  uint8_t qs[kSuperblockSize / 2];
  constexpr int scale(int part) const {
    const int low = (scales_l[part / 2] >> (part % 2 * 4)) & 15;
    return (low | ((scales_h >> (2 * part)) & 3) << 4) - 32;
  }
  constexpr int level(int i) const {
    return BlockIQ4_NL::kLevels[(qs[i / 32 * 16 + i % 16] >> (i % 32 / 16 * 4)) & 15];
  }
  float value(int i) const {
    return to_f32(d) * static_cast<float>(scale(i / 32)) * static_cast<float>(level(i));
  }
  [[gnu::always_inline]] PartBytes unpack_scales() const {
    const auto nibbles = load_word<uint32_t>(scales_l);
    const auto apart = [](uint64_t x) {  // byte k to byte 2 k
      x = (x | x << 16) & 0x0000ffff0000ffffu;
      return (x | x << 8) & 0x00ff00ff00ff00ffu;
    };
    const uint64_t low = apart(nibbles & 0x0f0f0f0fu) | apart(nibbles >> 4 & 0x0f0f0f0fu) << 8;
    uint64_t high = scales_h;  // pair j to byte j
    high = (high | high << 24) & 0x000000ff000000ffu;
    high = (high | high << 12) & 0x000f000f000f000fu;
    high = (high | high << 6) & 0x0303030303030303u;
    return {.scales = subtract_from_bytes(low | high << 4, 32), .mins = 0};
  }
};
using BlockIQ4_XS = Block<DType::iq4_xs>;

// ---------------------------------------------------------------- fields

/// Whether values are scale * level - minimum (in blocks of 32 values: + m), with levels from 0 on.
/// Otherwise they are scale * level.
template <DType T, typename B = Block<T>>
inline constexpr bool kHasMin = requires(B b) {
  b.m;
}
|| requires(B b) { b.dmin; }
|| requires(B b) { b.scales.dmin; };

/// What the f16 scale is multiplied by, a power of two.
template <DType T, typename B = Block<T>>
inline constexpr float kScaleUnit = [] {
  if constexpr (requires { B::kScaleUnit; }) return B::kScaleUnit;
  return 1.0f;
}();

/// Whether levels are given eight at a time, by part_words().
template <DType T, typename B = Block<T>>
inline constexpr bool kHasPartWords = requires(B b) {
  b.part_words(0);
};

/// Whether a block has an f16 scale, as all block types except mxfp4, nvfp4 and iq1_m do.
template <DType T, typename B = Block<T>>
inline constexpr bool kHasF16Scale = requires(B b) {
  b.d;
}
|| requires(B b) { b.scales.d; };

/// Offset of that scale in a block.
template <DType T>
inline constexpr size_t kScaleAt = [] {
  using B = Block<T>;
  if constexpr (requires(B b) { b.scales.d; }) {
    return offsetof(B, scales) + offsetof(PartScales, d);
  } else {
    return offsetof(B, d);
  }
}();

/// Offset of m in a block with kHasMin, or of dmin, which multiplies the parts' minima.
template <DType T>
inline constexpr size_t kMinAt = [] {
  using B = Block<T>;
  if constexpr (requires(B b) { b.scales.dmin; }) {
    return offsetof(B, scales) + offsetof(PartScales, dmin);
  } else if constexpr (requires(B b) { b.dmin; }) {
    return offsetof(B, dmin);
  } else {
    return offsetof(B, m);
  }
}();

// ---------------------------------------------------------------- choosing by type

template <DType T>
struct DTypeTag {
  static constexpr DType dtype = T;
};

/// Calls f(DTypeTag<T>()) for the template's type T that equals `dtype`; there must be one.
template <DType first, DType... others, typename F>
auto visit_dtype(DType dtype, F&& f) {
  if constexpr (sizeof...(others) > 0) {
    if (dtype != first) return visit_dtype<others...>(dtype, std::forward<F>(f));
  }
  SNAPKV_CHECK(dtype == first);
  return f(DTypeTag<first>());
}

/// Calls f(DTypeTag<T>()) for the type T of kWeightTypes that equals `dtype`:
///   visit_weight_type(dtype, [&](auto type) { return multiply<type.dtype>(...); });
template <typename F, size_t... i>
auto visit_weight_type(DType dtype, F&& f, std::index_sequence<i...>) {
  return visit_dtype<kWeightTypes[i]...>(dtype, std::forward<F>(f));
}
template <typename F>
auto visit_weight_type(DType dtype, F&& f) {
  return visit_weight_type(dtype, f, std::make_index_sequence<kWeightTypes.size()>());
}

/// Value i of a row.
template <DType T>
float value_at(const void* row, int64_t i) {
  static_assert(sizeof(Block<T>) == block_bytes(T));
  const Block<T>& block = static_cast<const Block<T>*>(row)[i / block_size(T)];
  return block.value(static_cast<int>(i % block_size(T)));
}

}  // namespace snapkv
