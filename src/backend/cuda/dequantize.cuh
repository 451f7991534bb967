// SPDX-License-Identifier: MIT
// The types of format/block_types.h in device code. Values of block types are scale * level - min,
// with levels as signed bytes, four to a word.
//
// The Format of a block type has
//   kBlockBytes, kBlockValues    of one block
//   kScaleValues                 how many values share a scale and a minimum, at most 32
//   kHasMin                      whether minima are ever other than 0
//   kVectors                     whether block sizes keep 16-byte alignment
//   levels<Reader>(block, i, w)  the 4 n levels from value i on; n is the size of w
//   scale_min(block, i)          scale and minimum of value i
// and a Reader returns words at an even address (blocks of mxfp4 may be at odd ones).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "format/block_types.h"

namespace snapkv::cuda {

/// Reads exactly the requested words, two bytes at a time.
struct PairReader {
  template <int n>
  static __device__ __forceinline__ void words(const char* p, uint32_t (&w)[n]) {
    const auto* pairs = reinterpret_cast<const uint16_t*>(p);
#pragma unroll
    for (int i = 0; i < n; ++i) {
      w[i] = pairs[2 * i] | static_cast<uint32_t>(pairs[2 * i + 1]) << 16;
    }
  }
};

/// Reads aligned words, one more than requested, and shifts them.
struct ShiftReader {
  template <int n>
  static __device__ __forceinline__ void words(const char* p, uint32_t (&w)[n]) {
    const uintptr_t odd = reinterpret_cast<uintptr_t>(p) & 2;
    const auto* aligned = reinterpret_cast<const uint32_t*>(p - odd);
    const auto shift = static_cast<uint32_t>(odd) * 8;
    uint32_t low = aligned[0];
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const uint32_t high = aligned[i + 1];
      w[i] = __funnelshift_r(low, high, shift);
      low = high;
    }
  }
};

/// Reads 16 bytes at a time; the address must be a multiple of 16.
struct VectorReader {
  template <int n>
  static __device__ __forceinline__ void words(const char* p, uint32_t (&w)[n]) {
    static_assert(n % 4 == 0);
#pragma unroll
    for (int i = 0; i < n; i += 4) {
      const uint4 v = reinterpret_cast<const uint4*>(p)[i / 4];
      w[i] = v.x;
      w[i + 1] = v.y;
      w[i + 2] = v.z;
      w[i + 3] = v.w;
    }
  }
};

__device__ __forceinline__ float half_at(const char* p) {
  return __half2float(__ushort_as_half(*reinterpret_cast<const unsigned short*>(p)));
}
__device__ __forceinline__ int byte_at(const char* p) {
  return *reinterpret_cast<const uint8_t*>(p);
}

/// Source: the template argument of kernels, an element of a plain type or the Format itself.
template <DType T>
struct Format;

template <>
struct Format<DType::f32> {
  using Source = float;
};
template <>
struct Format<DType::f16> {
  using Source = __half;
};
template <>
struct Format<DType::bf16> {
  using Source = __nv_bfloat16;
};

template <DType T>
struct BlockFormat {
  using Source = Format<T>;
  static constexpr int kBlockBytes = block_bytes(T), kBlockValues = block_size(T);
};

template <>
struct Format<DType::q8_0> : BlockFormat<DType::q8_0> {
  static constexpr int kScaleValues = 32;
  static constexpr bool kHasMin = false, kVectors = false;

  template <typename Reader, int n>
  static __device__ __forceinline__ void levels(const char* block, int i, uint32_t (&w)[n]) {
    Reader::words(block + 2 + i, w);
  }
  static __device__ __forceinline__ float2 scale_min(const char* block, int) {
    return make_float2(half_at(block), 0.0f);
  }
};

/// Levels from value i on in a block of 32 whose nibbles begin at qs; values 0 ... 15 are the low
/// nibbles.
template <typename Reader, int n>
__device__ __forceinline__ void nibble_levels(const char* qs, int i, uint32_t (&w)[n]) {
  if constexpr (n == 8) {  // all of them: both halves of every byte
    uint32_t pairs[4];
    Reader::words(qs, pairs);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      w[k] = pairs[k] & 0x0f0f0f0fu;
      w[4 + k] = (pairs[k] >> 4) & 0x0f0f0f0fu;
    }
  } else {
    static_assert(n <= 4);
    Reader::words(qs + i % 16, w);
#pragma unroll
    for (uint32_t& v : w) v = (v >> (i / 16 * 4)) & 0x0f0f0f0fu;
  }
}

template <>
struct Format<DType::q4_0> : BlockFormat<DType::q4_0> {
  static constexpr int kScaleValues = 32;
  static constexpr bool kHasMin = true, kVectors = false;

  template <typename Reader, int n>
  static __device__ __forceinline__ void levels(const char* block, int i, uint32_t (&w)[n]) {
    nibble_levels<Reader>(block + 2, i, w);
  }
  static __device__ __forceinline__ float2 scale_min(const char* block, int) {
    const float d = half_at(block);
    return make_float2(d, 8.0f * d);
  }
};

template <>
struct Format<DType::q4_1> : BlockFormat<DType::q4_1> {
  static constexpr int kScaleValues = 32;
  static constexpr bool kHasMin = true, kVectors = false;

  template <typename Reader, int n>
  static __device__ __forceinline__ void levels(const char* block, int i, uint32_t (&w)[n]) {
    nibble_levels<Reader>(block + 4, i, w);
  }
  static __device__ __forceinline__ float2 scale_min(const char* block, int) {
    return make_float2(half_at(block), -half_at(block + 2));
  }
};

/// Moves bit i + j of the 32 bits at qh to bit 4 of level j.
template <typename Reader, int n>
__device__ __forceinline__ void add_fifth_bits(const char* qh, int i, uint32_t (&w)[n]) {
  uint32_t high[1];
  Reader::words(qh, high);
#pragma unroll
  for (int k = 0; k < n; ++k) {  // bit j of four becomes bit 4 of byte j
    const uint32_t bits = (high[0] >> (i + 4 * k)) & 15u;
    w[k] |= ((bits * 0x00204081u) & 0x01010101u) << 4;
  }
}

template <>
struct Format<DType::q5_0> : BlockFormat<DType::q5_0> {
  static constexpr int kScaleValues = 32;
  static constexpr bool kHasMin = true, kVectors = false;

  template <typename Reader, int n>
  static __device__ __forceinline__ void levels(const char* block, int i, uint32_t (&w)[n]) {
    nibble_levels<Reader>(block + 6, i, w);
    add_fifth_bits<Reader>(block + 2, i, w);
  }
  static __device__ __forceinline__ float2 scale_min(const char* block, int) {
    const float d = half_at(block);
    return make_float2(d, 16.0f * d);
  }
};

template <>
struct Format<DType::q5_1> : BlockFormat<DType::q5_1> {
  static constexpr int kScaleValues = 32;
  static constexpr bool kHasMin = true, kVectors = false;

  template <typename Reader, int n>
  static __device__ __forceinline__ void levels(const char* block, int i, uint32_t (&w)[n]) {
    nibble_levels<Reader>(block + 8, i, w);
    add_fifth_bits<Reader>(block + 4, i, w);
  }
  static __device__ __forceinline__ float2 scale_min(const char* block, int) {
    return make_float2(half_at(block), -half_at(block + 2));
  }
};

/// Looks up each byte of v in a table of 16 bytes.
__device__ __forceinline__ uint32_t look_up(const uint32_t (&table)[4], uint32_t v) {
  const uint32_t index = __byte_perm(v | v >> 4, 0, 0x4420);  // four adjacent nibbles
  const uint32_t low = index & 0x7777u, high = index & 0x8888u;
  return __byte_perm(__byte_perm(table[0], table[1], low), __byte_perm(table[2], table[3], low),
                     0x3210u | high >> 1);
}

/// Levels i ... i + 3 of T's table.
template <DType T>
__host__ __device__ constexpr uint32_t levels_at(int i) {
  uint32_t word = 0;
  for (int k = 0; k < 4; ++k) {
    word |= static_cast<uint32_t>(Block<T>::kLevels[i + k] & 0xff) << (8 * k);
  }
  return word;
}

/// Replaces the bytes of w by the levels of T's table at these indices.
template <DType T, int n>
__device__ __forceinline__ void look_up_levels(uint32_t (&w)[n]) {
  constexpr uint32_t kTable[4] = {levels_at<T>(0), levels_at<T>(4), levels_at<T>(8),
                                  levels_at<T>(12)};
#pragma unroll
  for (uint32_t& v : w) v = look_up(kTable, v);
}

template <>
struct Format<DType::iq4_nl> : BlockFormat<DType::iq4_nl> {
  static constexpr int kScaleValues = 32;
  static constexpr bool kHasMin = false, kVectors = false;

  template <typename Reader, int n>
  static __device__ __forceinline__ void levels(const char* block, int i, uint32_t (&w)[n]) {
    nibble_levels<Reader>(block + 2, i, w);
    look_up_levels<DType::iq4_nl>(w);
  }
  static __device__ __forceinline__ float2 scale_min(const char* block, int) {
    return make_float2(half_at(block), 0.0f);
  }
};

/// Reads bytes; any address will do.
struct ByteReader {
  template <int n>
  static __device__ __forceinline__ void words(const char* p, uint32_t (&w)[n]) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(p);
#pragma unroll
    for (int i = 0; i < n; ++i) {
      w[i] = bytes[4 * i] | bytes[4 * i + 1] << 8 | bytes[4 * i + 2] << 16 |
             static_cast<uint32_t>(bytes[4 * i + 3]) << 24;
    }
  }
};

/// Blocks have 17 bytes, so half of them are at odd addresses.
template <>
struct Format<DType::mxfp4> : BlockFormat<DType::mxfp4> {
  static constexpr int kScaleValues = 32;
  static constexpr bool kHasMin = false, kVectors = false;

  template <typename Reader, int n>
  static __device__ __forceinline__ void levels(const char* block, int i, uint32_t (&w)[n]) {
    nibble_levels<ByteReader>(block + 1, i, w);
    look_up_levels<DType::mxfp4>(w);
  }
  static __device__ __forceinline__ float2 scale_min(const char* block, int) {
    const auto e = static_cast<uint32_t>(byte_at(block));
    return make_float2(__uint_as_float(e < 2 ? 0x00200000u << e : (e - 1) << 23), 0.0f);
  }
};

/// Blocks of 64 values with four scales; 16 values are the low nibbles of 8 bytes, then the high
/// ones.
template <>
struct Format<DType::nvfp4> : BlockFormat<DType::nvfp4> {
  static constexpr int kScaleValues = 16;
  static constexpr bool kHasMin = false, kVectors = false;

  template <typename Reader, int n>
  static __device__ __forceinline__ void levels(const char* block, int i, uint32_t (&w)[n]) {
    const char* qs = block + 4 + i / 16 * 8;
    if constexpr (n >= 4) {  // both halves of every byte
      uint32_t pairs[n / 2];
      Reader::words(qs, pairs);
#pragma unroll
      for (int k = 0; k < n; ++k) {
        w[k] = (pairs[k / 4 * 2 + k % 2] >> (k / 2 % 2 * 4)) & 0x0f0f0f0fu;
      }
    } else {
      Reader::words(qs + i % 8, w);
#pragma unroll
      for (uint32_t& v : w) v = (v >> (i / 8 % 2 * 4)) & 0x0f0f0f0fu;
    }
    look_up_levels<DType::mxfp4>(w);
  }
  static __device__ __forceinline__ float2 scale_min(const char* block, int i) {
    const int e4m3 = byte_at(block + i / 16);
    const float scale =
        __half2float(__ushort_as_half(static_cast<unsigned short>((e4m3 & 0x7f) << 7))) * 128.0f;
    return make_float2(e4m3 == 0x7f ? 0.0f : scale, 0.0f);
  }
};

/// Two bits of each of four bytes from value i on, as stored in q2_k and q3_k.
template <typename Reader, int n>
__device__ __forceinline__ void pair_levels(const char* qs, int i, uint32_t (&w)[n]) {
  Reader::words(qs + i / 128 * 32 + i % 32, w);
#pragma unroll
  for (uint32_t& v : w) v = (v >> (i / 32 % 4 * 2)) & 0x03030303u;
}

template <>
struct Format<DType::q2_k> : BlockFormat<DType::q2_k> {
  static constexpr int kScaleValues = 16;
  static constexpr bool kHasMin = true, kVectors = false;

  template <typename Reader, int n>
  static __device__ __forceinline__ void levels(const char* block, int i, uint32_t (&w)[n]) {
    pair_levels<Reader>(block + 16, i, w);
  }
  static __device__ __forceinline__ float2 scale_min(const char* block, int i) {
    const int both = byte_at(block + i / 16);
    return make_float2(half_at(block + 80) * static_cast<float>(both & 15),
                       half_at(block + 82) * static_cast<float>(both >> 4));
  }
};

template <>
struct Format<DType::q3_k> : BlockFormat<DType::q3_k> {
  static constexpr int kScaleValues = 16;
  static constexpr bool kHasMin = false, kVectors = false;

  template <typename Reader, int n>
  static __device__ __forceinline__ void levels(const char* block, int i, uint32_t (&w)[n]) {
    uint32_t high[n];
    Reader::words(block + i % 32, high);
    pair_levels<Reader>(block + 32, i, w);
#pragma unroll
    for (int k = 0; k < n; ++k) {
      const uint32_t v = w[k] | ((high[k] >> (i / 32)) & 0x01010101u) << 2;
      // v - 4 in every byte: bit 7 keeps borrows within the byte and then becomes the sign.
      w[k] = ((v | 0x80808080u) - 0x04040404u) ^ 0x80808080u;
    }
  }
  static __device__ __forceinline__ float2 scale_min(const char* block, int i) {
    const int k = i / 16;
    const int low = (byte_at(block + 96 + k % 8) >> (k / 8 * 4)) & 15;
    const int high = (byte_at(block + 104 + k % 4) >> (k / 4 * 2)) & 3;
    const int scale = (low | high << 4) - 32;
    return make_float2(half_at(block + 108) * static_cast<float>(scale), 0.0f);
  }
};

/// Scale and minimum of value i in a block that begins with PartScales.
__device__ __forceinline__ float2 part_scale_min(const char* block, int i) {
  const int part = i / 32;
  const char* bytes = block + 4 + part % 4;
  const int first = byte_at(bytes), second = byte_at(bytes + 4), third = byte_at(bytes + 8);
  const bool low = part < 4;
  const int scale = low ? first & 63 : (third & 15) | (first >> 6 << 4);
  const int min = low ? second & 63 : (third >> 4) | (second >> 6 << 4);
  return make_float2(half_at(block) * static_cast<float>(scale),
                     half_at(block + 2) * static_cast<float>(min));
}

template <>
struct Format<DType::q4_k> : BlockFormat<DType::q4_k> {
  static constexpr int kScaleValues = 32;
  static constexpr bool kHasMin = true, kVectors = true;

  template <typename Reader, int n>
  static __device__ __forceinline__ void levels(const char* block, int i, uint32_t (&w)[n]) {
    Reader::words(block + 16 + i / 64 * 32 + i % 32, w);
#pragma unroll
    for (uint32_t& v : w) v = (v >> (i / 32 % 2 * 4)) & 0x0f0f0f0fu;
  }
  static __device__ __forceinline__ float2 scale_min(const char* block, int i) {
    return part_scale_min(block, i);
  }
};

template <>
struct Format<DType::q5_k> : BlockFormat<DType::q5_k> {
  static constexpr int kScaleValues = 32;
  static constexpr bool kHasMin = true, kVectors = true;

  template <typename Reader, int n>
  static __device__ __forceinline__ void levels(const char* block, int i, uint32_t (&w)[n]) {
    uint32_t high[n];
    Reader::words(block + 16 + i % 32, high);
    Reader::words(block + 48 + i / 64 * 32 + i % 32, w);
#pragma unroll
    for (int k = 0; k < n; ++k) {
      w[k] = ((w[k] >> (i / 32 % 2 * 4)) & 0x0f0f0f0fu) | ((high[k] >> (i / 32)) & 0x01010101u)
                                                              << 4;
    }
  }
  static __device__ __forceinline__ float2 scale_min(const char* block, int i) {
    return part_scale_min(block, i);
  }
};

template <>
struct Format<DType::q6_k> : BlockFormat<DType::q6_k> {
  static constexpr int kScaleValues = 16;
  static constexpr bool kHasMin = false, kVectors = false;

  template <typename Reader, int n>
  static __device__ __forceinline__ void levels(const char* block, int i, uint32_t (&w)[n]) {
    const int half = i / 128, k = i / 32 % 4;
    uint32_t high[n];
    Reader::words(block + 64 * half + 32 * (k % 2) + i % 32, w);
    Reader::words(block + 128 + 32 * half + i % 32, high);
#pragma unroll
    for (int j = 0; j < n; ++j) {
      const uint32_t v =
          ((w[j] >> (k / 2 * 4)) & 0x0f0f0f0fu) | ((high[j] >> (2 * k)) & 0x03030303u) << 4;
      // v - 32 in every byte: bit 7 keeps borrows within the byte and then becomes the sign.
      w[j] = ((v | 0x80808080u) - 0x20202020u) ^ 0x80808080u;
    }
  }
  static __device__ __forceinline__ float2 scale_min(const char* block, int i) {
    const int scale = static_cast<signed char>(byte_at(block + 192 + i / 16));
    return make_float2(half_at(block + 208) * static_cast<float>(scale), 0.0f);
  }
};

template <>
struct Format<DType::iq4_xs> : BlockFormat<DType::iq4_xs> {
  static constexpr int kScaleValues = 32;
  static constexpr bool kHasMin = false, kVectors = false;

  template <typename Reader, int n>
  static __device__ __forceinline__ void levels(const char* block, int i, uint32_t (&w)[n]) {
    nibble_levels<Reader>(block + 8 + i / 32 * 16, i % 32, w);
    look_up_levels<DType::iq4_nl>(w);
  }
  static __device__ __forceinline__ float2 scale_min(const char* block, int i) {
    const int part = i / 32;
    const int low = (byte_at(block + 4 + part / 2) >> (part % 2 * 4)) & 15;
    const int high = (byte_at(block + 2 + part / 4) >> (part % 4 * 2)) & 3;
    const int scale = (low | high << 4) - 32;
    return make_float2(half_at(block) * static_cast<float>(scale), 0.0f);
  }
};

/// Byte k of a word of levels.
__device__ __forceinline__ float level_at(uint32_t word, int k) {
  return static_cast<float>(static_cast<signed char>(word >> (8 * k)));
}

}  // namespace snapkv::cuda
