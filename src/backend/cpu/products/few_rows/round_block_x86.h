// SPDX-License-Identifier: MIT
// Rounds 32 activations to 8 bits with AVX2.
#pragma once

#if defined(__x86_64__)

#include <bit>

#include "backend/cpu/weights/blocks_x86.h"
#include "base/half.h"

namespace snapkv::cpu {

/// 32 values.
using FloatBlock = __m256[4];

SNAPKV_AVX2_INLINE void load_block(const float* from, FloatBlock& x) {
  SNAPKV_UNROLL for (int i = 0; i < 4; ++i) x[i] = _mm256_loadu_ps(from + 8 * i);
}
SNAPKV_AVX2_INLINE void load_block(const bf16_t* from, FloatBlock& x) {
  SNAPKV_UNROLL for (int i = 0; i < 4; ++i) {
    const __m128i bits = load_16(reinterpret_cast<const char*>(from + 8 * i));
    x[i] = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
}

/// The largest magnitude, compared as bits, so that a NaN is the maximum and shows in the result.
SNAPKV_AVX2_INLINE float max_magnitude(const FloatBlock& x) {
  const __m256i absolute = _mm256_set1_epi32(0x7fffffff);
  __m256i max = _mm256_setzero_si256();
  SNAPKV_UNROLL for (int i = 0; i < 4; ++i) {
    max = _mm256_max_epi32(max, _mm256_and_si256(_mm256_castps_si256(x[i]), absolute));
  }
  __m128i m = _mm_max_epi32(_mm256_castsi256_si128(max), _mm256_extracti128_si256(max, 1));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0b01'00'11'10));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0b10'11'00'01));
  return std::bit_cast<float>(_mm_cvtsi128_si32(m));
}

/// The values times `inverse`, rounded to the nearest of -128 ... 127.
SNAPKV_AVX2_INLINE __m256i round_block(const FloatBlock& x, float inverse) {
  __m256i q[4];
  SNAPKV_UNROLL for (int i = 0; i < 4; ++i) {
    q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(x[i], _mm256_set1_ps(inverse)));
  }
  return _mm256_permutevar8x32_epi32(
      _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3])),
      _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

struct HalfSums {
  int32_t first, last;
};
/// The negated sums of the first and of the last 16 bytes.
SNAPKV_AVX2_INLINE HalfSums negative_half_sums(__m256i q) {
  const __m256i fours =
      _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), q), _mm256_set1_epi16(-1));
  const __m256i twos = _mm256_add_epi32(fours, _mm256_shuffle_epi32(fours, 0b01'00'11'10));
  const __m256i sums = _mm256_add_epi32(twos, _mm256_shuffle_epi32(twos, 0b10'11'00'01));
  return {.first = _mm_cvtsi128_si32(_mm256_castsi256_si128(sums)),
          .last = _mm_cvtsi128_si32(_mm256_extracti128_si256(sums, 1))};
}

}  // namespace snapkv::cpu

#endif  // x86-64
