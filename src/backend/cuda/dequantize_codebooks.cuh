// SPDX-License-Identifier: MIT
// Formats of the types of format/codebook_types.h: a Format has
//   group(block, g, w)   the 8 levels of group g in two words
//   scale(block, k)      the integer that multiplies levels, of the k-th kScaleValues values
// The codes of the codebooks are expanded by arithmetic, which takes less memory than the levels.
#pragma once

#include "backend/cuda/dequantize.cuh"

namespace snapkv::cuda {

static __device__ const uint16_t kIq2XxsCodes[] = {
#include "format/codebooks/iq2_xxs.inc"
};
static __device__ const uint16_t kIq2XsCodes[] = {
#include "format/codebooks/iq2_xs.inc"
};
static __device__ const uint16_t kIq2SCodes[] = {
#include "format/codebooks/iq2_s.inc"
};
static __device__ const uint16_t kIq3XxsCodes[] = {
#include "format/codebooks/iq3_xxs.inc"
};
static __device__ const uint16_t kIq3SCodes[] = {
#include "format/codebooks/iq3_s.inc"
};
static __device__ const uint16_t kIq1SCodes[] = {
#include "format/codebooks/iq1_s.inc"
};

__device__ __forceinline__ uint32_t short_at(const char* p) {  // at an even address
  return *reinterpret_cast<const uint16_t*>(p);
}

/// Four codes of two bits, each in a byte of its own.
__device__ __forceinline__ uint32_t apart_2(uint32_t code) {
  uint32_t x = code & 255;
  x = (x | x << 12) & 0x000f000fu;
  return (x | x << 6) & 0x03030303u;
}
/// Four codes of three bits, each in a byte of its own.
__device__ __forceinline__ uint32_t apart_3(uint32_t code) {
  return (code & 0x007u) | (code & 0x038u) << 5 | (code & 0x1c0u) << 10 | (code & 0xe00u) << 15;
}
/// 8, 25, 43
__device__ __forceinline__ uint32_t iq2_levels(uint32_t code) {
  const uint32_t x = apart_2(code);
  return x * 17 + (x >> 1 & 0x01010101u) + 0x08080808u;
}
/// 4, 12, 20, 28, 36, 44, 52, 62
__device__ __forceinline__ uint32_t iq3_xxs_levels(uint32_t code) {
  const uint32_t x = apart_3(code), is_last = x & x >> 1 & x >> 2 & 0x01010101u;
  return x * 8 + is_last * 2 + 0x04040404u;
}
/// Subtracts from each of four bytes below 128.
__device__ __forceinline__ uint32_t less(uint32_t bytes, uint32_t by) {
  return ((bytes | 0x80808080u) - 0x01010101u * by) ^ 0x80808080u;
}
/// Changes the sign of each of four bytes, none of them 0, whose bit is set.
__device__ __forceinline__ uint32_t change_signs(uint32_t bytes, uint32_t bits) {
  const uint32_t ones = (bits & 15) * 0x00204081u & 0x01010101u;
  return (bytes ^ ones * 255) + ones;
}
/// Seven signs and the one that makes the number of minus signs even.
__device__ __forceinline__ uint32_t even_signs(uint32_t bits) {
  bits &= 127;
  uint32_t parity = bits ^ bits >> 4;
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return bits | (parity & 1) << 7;
}

template <DType T, int scale_values>
struct CodebookFormat : BlockFormat<T> {
  static constexpr int kScaleValues = scale_values;
  static constexpr bool kHasMin = false, kVectors = false;
  static constexpr int kScaleAt = static_cast<int>(snapkv::kScaleAt<T>);

  template <typename, int n>
  static __device__ __forceinline__ void levels(const char* block, int i, uint32_t (&w)[n]) {
#pragma unroll
    for (int k = 0; k < n; ++k) {
      uint32_t both[2];
      Format<T>::group(block, i / 8 + (i / 4 % 2 + k) / 2, both);
      w[k] = both[(i / 4 + k) % 2];
    }
  }
  static __device__ __forceinline__ float2 scale_min(const char* block, int i) {
    const float d = half_at(block + kScaleAt) * kScaleUnit<T>;
    return make_float2(d * static_cast<float>(Format<T>::scale(block, i / kScaleValues)), 0.0f);
  }
};

template <>
struct Format<DType::iq2_xxs> : CodebookFormat<DType::iq2_xxs, 32> {
  static __device__ __forceinline__ void group(const char* block, int g, uint32_t (&w)[2]) {
    const char* part = block + 2 + g / 4 * 8;
    const uint32_t code = kIq2XxsCodes[byte_at(part + g % 4)];
    const uint32_t bits = short_at(part + 4) | short_at(part + 6) << 16;
    const uint32_t signs = even_signs(bits >> g % 4 * 7);
    w[0] = change_signs(iq2_levels(code), signs);
    w[1] = change_signs(iq2_levels(code >> 8), signs >> 4);
  }
  static __device__ __forceinline__ int scale(const char* block, int k) {
    return (byte_at(block + 2 + k * 8 + 7) >> 4) * 2 + 1;
  }
};

template <>
struct Format<DType::iq2_xs> : CodebookFormat<DType::iq2_xs, 16> {
  static __device__ __forceinline__ void group(const char* block, int g, uint32_t (&w)[2]) {
    const uint32_t q = short_at(block + 2 + 2 * g);
    const uint32_t code = kIq2XsCodes[q & 511], signs = even_signs(q >> 9);
    w[0] = change_signs(iq2_levels(code), signs);
    w[1] = change_signs(iq2_levels(code >> 8), signs >> 4);
  }
  static __device__ __forceinline__ int scale(const char* block, int k) {
    return (byte_at(block + 66 + k / 2) >> k % 2 * 4 & 15) * 2 + 1;
  }
};

template <>
struct Format<DType::iq2_s> : CodebookFormat<DType::iq2_s, 16> {
  static __device__ __forceinline__ void group(const char* block, int g, uint32_t (&w)[2]) {
    const int high = byte_at(block + 66 + g / 4) >> g % 4 * 2 & 3;
    const uint32_t code = kIq2SCodes[byte_at(block + 2 + g) | high << 8];
    const auto signs = static_cast<uint32_t>(byte_at(block + 34 + g));
    w[0] = change_signs(iq2_levels(code), signs);
    w[1] = change_signs(iq2_levels(code >> 8), signs >> 4);
  }
  static __device__ __forceinline__ int scale(const char* block, int k) {
    return (byte_at(block + 74 + k / 2) >> k % 2 * 4 & 15) * 2 + 1;
  }
};

template <>
struct Format<DType::iq3_xxs> : CodebookFormat<DType::iq3_xxs, 32> {
  static __device__ __forceinline__ void group(const char* block, int g, uint32_t (&w)[2]) {
    const char* bits = block + 66 + g / 4 * 4;
    const uint32_t signs = even_signs((short_at(bits) | short_at(bits + 2) << 16) >> g % 4 * 7);
    const char* entries = block + 2 + 2 * g;
    w[0] = change_signs(iq3_xxs_levels(kIq3XxsCodes[byte_at(entries)]), signs);
    w[1] = change_signs(iq3_xxs_levels(kIq3XxsCodes[byte_at(entries + 1)]), signs >> 4);
  }
  static __device__ __forceinline__ int scale(const char* block, int k) {
    return (byte_at(block + 66 + k * 4 + 3) >> 4) * 2 + 1;
  }
};

template <>
struct Format<DType::iq3_s> : CodebookFormat<DType::iq3_s, 32> {
  static __device__ __forceinline__ void group(const char* block, int g, uint32_t (&w)[2]) {
    const int high = byte_at(block + 66 + g / 4) >> g % 4 * 2;
    const auto signs = static_cast<uint32_t>(byte_at(block + 74 + g));
    const char* entries = block + 2 + 2 * g;
    const auto levels = [&](int h) {
      const int entry = byte_at(entries + h) | (high >> h & 1) << 8;
      return apart_3(kIq3SCodes[entry]) * 2 + 0x01010101u;
    };
    w[0] = change_signs(levels(0), signs);
    w[1] = change_signs(levels(1), signs >> 4);
  }
  static __device__ __forceinline__ int scale(const char* block, int k) {
    return (byte_at(block + 106 + k / 2) >> k % 2 * 4 & 15) * 2 + 1;
  }
};

template <>
struct Format<DType::iq1_s> : CodebookFormat<DType::iq1_s, 32> {
  static __device__ __forceinline__ void group(const char* block, int g, uint32_t (&w)[2]) {
    const uint32_t high = short_at(block + 34 + g / 4 * 2);
    const uint32_t code = kIq1SCodes[byte_at(block + 2 + g) | (high >> g % 4 * 3 & 7) << 8];
    const uint32_t by = high & 0x8000 ? 9 : 7;
    w[0] = less(apart_2(code) * 8, by);
    w[1] = less(apart_2(code >> 8) * 8, by);
  }
  static __device__ __forceinline__ int scale(const char* block, int k) {
    return static_cast<int>(short_at(block + 34 + k * 2) >> 12 & 7) * 2 + 1;
  }
};

template <>
struct Format<DType::iq1_m> : BlockFormat<DType::iq1_m> {
  static constexpr int kScaleValues = 16;
  static constexpr bool kHasMin = false, kVectors = false;

  template <typename, int n>
  static __device__ __forceinline__ void levels(const char* block, int i, uint32_t (&w)[n]) {
#pragma unroll
    for (int k = 0; k < n; ++k) {
      const int g = i / 8 + (i / 4 % 2 + k) / 2;
      const int nibble = byte_at(block + 32 + g / 2) >> g % 2 * 4;
      const uint32_t code = kIq1SCodes[byte_at(block + g) | (nibble & 7) << 8];
      w[k] = less(apart_2(code >> (i / 4 + k) % 2 * 8) * 8, nibble & 8 ? 9 : 7);
    }
  }
  static __device__ __forceinline__ float2 scale_min(const char* block, int i) {
    const char* scales = block + 48;
    const uint32_t bits = short_at(scales) >> 12 | (short_at(scales + 2) >> 12) << 4 |
                          (short_at(scales + 4) >> 12) << 8 | (short_at(scales + 6) >> 12) << 12;
    const float d = __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
    const int k = i / 16;
    const auto scale = static_cast<int>(short_at(scales + k / 4 * 2) >> k % 4 * 3 & 7) * 2 + 1;
    return make_float2(d * kScaleUnit<DType::iq1_m> * static_cast<float>(scale), 0.0f);
  }
};

template <>
struct Format<DType::tq1_0> : CodebookFormat<DType::tq1_0, 32> {
  static __device__ __forceinline__ void group(const char* block, int g, uint32_t (&w)[2]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      uint32_t levels = 0;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int i = g * 8 + h * 4 + k;
        int at = i % 32, digit = i / 32;
        if (i >= 240) {
          at = 48 + i % 4;
          digit = (i - 240) / 4;
        } else if (i >= 160) {
          at = 32 + i % 16;
          digit = (i - 160) / 16;
        }
        constexpr uint32_t kPowers = 1 | 3 << 4 | 9 << 8;  // of the digits 0, 1, 2
        const uint32_t power = digit < 3 ? kPowers >> 4 * digit & 15 : digit == 3 ? 27 : 81;
        levels |= ((byte_at(block + at) * power & 255) * 3 >> 8) << 8 * k;
      }
      w[h] = less(levels, 1);
    }
  }
  static __device__ __forceinline__ int scale(const char*, int) { return 1; }
};

template <>
struct Format<DType::tq2_0> : CodebookFormat<DType::tq2_0, 32> {
  static __device__ __forceinline__ void group(const char* block, int g, uint32_t (&w)[2]) {
    const char* p = block + g / 16 * 32 + g % 4 * 8;
    const int shift = g / 4 % 4 * 2;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const uint32_t bytes = short_at(p + 4 * h) | short_at(p + 4 * h + 2) << 16;
      w[h] = less(bytes >> shift & 0x03030303u, 1);
    }
  }
  static __device__ __forceinline__ int scale(const char*, int) { return 1; }
};

}  // namespace snapkv::cuda
