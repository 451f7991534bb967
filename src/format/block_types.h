// SPDX-License-Identifier: MIT
// What the types of weights look like in memory and in GGUF files (little endian): a Block<T> for
// every DType that weights may have, whose value(i) is the specification that ref/ and all tests
// read; and visit_weight_type(), by which code that is a template of a type is chosen.
//
// Plain types are blocks of one value. The block types have blocks of 32 values, or superblocks of
// 256 (the "K" types) whose parts have small integer scales of their own. value(i) has the bits
// that ggml's f32 has: all products are exact in f32, and a minimum is subtracted with one
// rounding.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/half.h"
#include "snapkv/dtype.h"

namespace snapkv {

inline constexpr int kBlockSize = 32;
inline constexpr int kSuperblockSize = 256;
inline constexpr int kSuperblockParts = kSuperblockSize / kBlockSize;  // of 32 values: 8

template <DType T>
struct Block;

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

/// As q4_0, but nibbles are places in a table of levels that lie closer to each other near 0.
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

// ---------------------------------------------------------------- superblocks

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
  /// d * scale(part) * level - dmin * min(part) of the part that has value i.
  float value(int i, int level) const {
    const int part = i / kBlockSize;
    return to_f32(d) * static_cast<float>(scale(part)) * static_cast<float>(level) -
           to_f32(dmin) * static_cast<float>(min(part));
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
};
using BlockQ6_K = Block<DType::q6_k>;

// ---------------------------------------------------------------- choosing by type

template <DType T>
struct DTypeTag {
  static constexpr DType dtype = T;
};

/// f(DTypeTag<T>()) of the T among the template's types that is `dtype`, which must be one of them.
template <DType first, DType... others, typename F>
auto visit_dtype(DType dtype, F&& f) {
  if constexpr (sizeof...(others) > 0) {
    if (dtype != first) return visit_dtype<others...>(dtype, std::forward<F>(f));
  }
  SNAPKV_CHECK(dtype == first);
  return f(DTypeTag<first>());
}

/// f(DTypeTag<T>()) of the T among kWeightTypes that is `dtype`:
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
