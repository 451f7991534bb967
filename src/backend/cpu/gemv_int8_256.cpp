// SPDX-License-Identifier: MIT
// Activations as the 8-bit kernels with vectors of 256 bits read them.
#include "backend/cpu/gemv_int8_256.h"

#if defined(__x86_64__)

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

// The functions of this file run only where has(CpuTarget::avx2).
#define SNAPKV_AVX2 __attribute__((target("avx2,f16c")))

namespace snapkv::cpu {
namespace {

/// The largest magnitude of a block's 32 values, as bits, so that a NaN is the maximum and shows in
/// the result.
SNAPKV_AVX2_INLINE float max_magnitude(const float* x) {
  const __m256i absolute = _mm256_set1_epi32(0x7fffffff);
  __m256i max = _mm256_setzero_si256();
  SNAPKV_UNROLL for (int i = 0; i < kBlockSize; i += 8) {
    max = _mm256_max_epi32(
        max, _mm256_and_si256(load_32(reinterpret_cast<const char*>(x + i)), absolute));
  }
  __m128i m = _mm_max_epi32(_mm256_castsi256_si128(max), _mm256_extracti128_si256(max, 1));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0b01'00'11'10));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0b10'11'00'01));
  return std::bit_cast<float>(_mm_cvtsi128_si32(m));
}

SNAPKV_AVX2_INLINE __m256i round_8(const float* x, __m256 inverse) {
  return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_load_ps(x), inverse));
}
/// 32 values times `inverse`, each to the nearest of -128 ... 127.
SNAPKV_AVX2_INLINE __m256i round_block(const float* x, float inverse) {
  const __m256 v = _mm256_set1_ps(inverse);
  const __m256i low = _mm256_packs_epi32(round_8(x, v), round_8(x + 8, v));
  const __m256i high = _mm256_packs_epi32(round_8(x + 16, v), round_8(x + 24, v));
  return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high),
                                     _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

SNAPKV_AVX2 void prepare_blocks(const float* x, int64_t n, bool nibbles, BlockUnit& unit) {
  alignas(32) float values[kGemvUnit] = {};
  std::memcpy(values, x, static_cast<size_t>(n) * sizeof(float));
  std::memset(unit.negative_sums, 0, sizeof(unit.negative_sums));
  for (int b = 0; b < kUnitBlocks; ++b) {
    const float max = max_magnitude(values + b * kBlockSize);
    alignas(32) int8_t q[kBlockSize];
    const __m256i rounded = round_block(values + b * kBlockSize, max > 0 ? 127.0f / max : 0.0f);
    _mm256_store_si256(reinterpret_cast<__m256i*>(q), rounded);
    int sum = 0;
    for (int half = 0; half < 2; ++half) {
      const int row = nibbles ? b / 2 * 2 + half : b;
      const int begin = nibbles ? b % 2 * 16 : half * 16;
      for (int i = 0; i < 16; ++i) {
        const int value = q[16 * half + i];
        unit.q[row][begin + i] = static_cast<int8_t>(value);
        unit.magnitudes[row][begin + i] = static_cast<uint8_t>(std::abs(value));
        unit.negative_sums[nibbles ? b / 2 : b][(begin + i) / 4] -= 128 * value;
        sum += value;
      }
    }
    unit.d[place_of_block(b)] = max / 127.0f;
    unit.sum[place_of_block(b)] = max / 127.0f * static_cast<float>(sum);
  }
}

}  // namespace

void prepare_block_unit(const float* x, int64_t n, void* unit) {
  prepare_blocks(x, n, false, *static_cast<BlockUnit*>(unit));
}
void prepare_nibble_unit(const float* x, int64_t n, void* unit) {
  prepare_blocks(x, n, true, *static_cast<BlockUnit*>(unit));
}

SNAPKV_AVX2 void prepare_k_unit(const float* x, int64_t n, void* unit_) {
  KUnit& unit = *static_cast<KUnit*>(unit_);
  alignas(32) float values[kSuperblockSize] = {};
  std::memcpy(values, x, static_cast<size_t>(n) * sizeof(float));
  float max[kSuperblockParts];
  int32_t max_bits = 0;
  for (int part = 0; part < kSuperblockParts; ++part) {
    max[part] = max_magnitude(values + part * kBlockSize);
    max_bits = std::max(max_bits, std::bit_cast<int32_t>(max[part]));
  }
  const auto max_of_all = std::bit_cast<float>(max_bits);
  unit.d = max_of_all / (127.0f * KUnit::kMaxM);
  for (int part = 0; part < kSuperblockParts; ++part) {
    const float wanted = std::ceil(max[part] / max_of_all * KUnit::kMaxM);
    // 1 for what is no number too, which d then is not either
    const int m = wanted > 1 ? std::min(static_cast<int>(wanted), KUnit::kMaxM) : 1;
    const float inverse = max_of_all > 0 ? 127.0f * KUnit::kMaxM / max_of_all / m : 0.0f;
    const __m256i q = round_block(values + part * kBlockSize, inverse);
    _mm256_store_si256(reinterpret_cast<__m256i*>(unit.q[part]), q);
    _mm256_store_si256(reinterpret_cast<__m256i*>(unit.magnitudes[part]), _mm256_abs_epi8(q));
    unit.m[part] = static_cast<int16_t>(m);
    int sums[2] = {};
    for (int i = 0; i < kBlockSize; ++i) sums[i / 16] += unit.q[part][i];
    for (int h = 0; h < 2; ++h) unit.half_sums[h][part] = static_cast<int16_t>(sums[h]);
    unit.sums[part] = static_cast<int16_t>(sums[0] + sums[1]);
  }
}

}  // namespace snapkv::cpu

#endif  // x86-64
