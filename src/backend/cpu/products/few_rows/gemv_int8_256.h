// SPDX-License-Identifier: MIT
// Shared parts of the 8-bit kernels with 256-bit vectors. Functions of this file run only where
// has(CpuTarget::avx2).
#pragma once

#include "backend/cpu/products/few_rows/gemv.h"

#if defined(__x86_64__)

#include <cstdint>

#include "backend/cpu/weights/types_x86.h"

namespace snapkv::cpu {

inline constexpr int kUnitBlocks = kGemvUnit / kBlockSize;  // 8
inline constexpr int kUnitPairs = kUnitBlocks / 2;

/// Numbers of even blocks come first, then those of odd blocks, in a 128-bit lane each.
constexpr int place_of_block(int block) { return block % 2 * kUnitPairs + block / 2; }

/// Activations for blocks of 32 values, rounded as in gemv.h. For blocks of nibbles, q[2 * pair]
/// has the first halves of blocks 2 * pair and 2 * pair + 1, and q[2 * pair + 1] their last halves.
struct alignas(64) BlockUnit {
  int8_t q[kUnitBlocks][kBlockSize];
  uint8_t magnitudes[kUnitBlocks][kBlockSize];  // |q|
  /// Sums of 4 adjacent q each, times -128. With nibbles, [pair] has those of q[2 * pair] and q[2 *
  /// pair + 1] together.
  int32_t negative_sums[kUnitBlocks][kBlockSize / 4];
  float d[kUnitBlocks];    // at place_of_block()
  float sum[kUnitBlocks];  // d * sum of q, likewise
};
void prepare_block_unit(const float* x, int64_t n, void* unit);
void prepare_nibble_unit(const float* x, int64_t n, void* unit);

/// Activations for superblocks, whose scales are integers: value i = d * m of its 32 values * q[i],
/// with d = max|x| of the unit / (127 * kMaxM) and m the smallest number in 1 ... kMaxM for which q
/// fits into 8 bits. Compared with a scale of its own, a part's step is larger by at most 1/kMaxM
/// of the step of the unit's largest part.
struct alignas(64) KUnit {
  static constexpr int kMaxM = 63;
  int8_t q[kSuperblockParts][kBlockSize];
  uint8_t magnitudes[kSuperblockParts][kBlockSize];  // |q|
  int16_t m[kSuperblockParts];
  int16_t sums[kSuperblockParts];               // of each part's q
  int16_t half_sums[2][kSuperblockParts];       // of the first and the last 16 q of each part
  int16_t group_sums[2][2 * kSuperblockParts];  // of 8 q: two for each of half_sums
  float d;
  // m of each part in all places of a vector, for types that have no scales of parts
  alignas(64) int16_t m_of_pairs[kSuperblockParts][16];
  uint8_t m_of_values[kSuperblockParts][kBlockSize];
};
static_assert(kGemvUnit == kSuperblockSize);
void prepare_k_unit(const float* x, int64_t n, void* unit);

__attribute__((target("avx2"))) inline float sum_lanes(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/// Sums of two adjacent products. Level * x is |level| * sign(x, level), or sign(level, x) * |x| if
/// no level is -128.
template <DType T>
SNAPKV_AVX2_INLINE __m256i multiply_neighbours(__m256i levels, const int8_t* x,
                                               const uint8_t* x_magnitudes) {
  const __m256i q = _mm256_load_si256(reinterpret_cast<const __m256i*>(x));
  if constexpr (HasLevelOffset<T>) {
    return _mm256_maddubs_epi16(levels, q);
  } else if constexpr (T == DType::q8_0) {
    return _mm256_maddubs_epi16(_mm256_abs_epi8(levels), _mm256_sign_epi8(q, levels));
  } else {
    const __m256i magnitudes = _mm256_load_si256(reinterpret_cast<const __m256i*>(x_magnitudes));
    return _mm256_maddubs_epi16(magnitudes, _mm256_sign_epi8(levels, q));
  }
}

/// Calls f(constant, part) for c.n activation rows, 4, 2 or 1 (the constant's value) at a time.
template <typename F>
void for_activation_rows(const GemvCall& c, F&& f) {
  GemvCall part = c;
  while (part.n > 0) {
    const int n = part.n >= 4 ? 4 : part.n >= 2 ? 2 : 1;
    if (n == 4) f(std::integral_constant<int, 4>(), part);
    if (n == 2) f(std::integral_constant<int, 2>(), part);
    if (n == 1) f(std::integral_constant<int, 1>(), part);
    part.x += n * c.x_stride;
    part.sums += n * c.sums_stride;
    part.n -= n;
  }
}

}  // namespace snapkv::cpu

#endif  // x86-64
