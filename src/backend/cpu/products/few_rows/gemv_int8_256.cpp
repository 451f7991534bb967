// SPDX-License-Identifier: MIT
// Prepares activations for the 8-bit kernels with 256-bit vectors.
#include "backend/cpu/products/few_rows/gemv_int8_256.h"

#if defined(__x86_64__)

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "backend/cpu/products/few_rows/round_block_x86.h"

// The functions of this file run only where has(CpuTarget::avx2).
#define SNAPKV_AVX2 __attribute__((target("avx2,f16c")))

namespace snapkv::cpu {
namespace {

SNAPKV_AVX2 void prepare_blocks(const float* x, int64_t n, bool nibbles, BlockUnit& unit) {
  alignas(32) float values[kGemvUnit] = {};
  std::memcpy(values, x, static_cast<size_t>(n) * sizeof(float));
  std::memset(unit.negative_sums, 0, sizeof(unit.negative_sums));
  for (int b = 0; b < kUnitBlocks; ++b) {
    FloatBlock block;
    load_block(values + b * kBlockSize, block);
    const float max = max_magnitude(block);
    alignas(32) int8_t q[kBlockSize];
    const __m256i rounded = round_block(block, max > 0 ? 127.0f / max : 0.0f);
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
    FloatBlock block;
    load_block(values + part * kBlockSize, block);
    max[part] = max_magnitude(block);
    max_bits = std::max(max_bits, std::bit_cast<int32_t>(max[part]));
  }
  const auto max_of_all = std::bit_cast<float>(max_bits);
  unit.d = max_of_all / (127.0f * KUnit::kMaxM);
  for (int part = 0; part < kSuperblockParts; ++part) {
    const float wanted = std::ceil(max[part] / max_of_all * KUnit::kMaxM);
    // 1 for a NaN too, which d then is as well
    const int m = wanted > 1 ? std::min(static_cast<int>(wanted), KUnit::kMaxM) : 1;
    const float inverse = max_of_all > 0 ? 127.0f * KUnit::kMaxM / max_of_all / m : 0.0f;
    FloatBlock block;
    load_block(values + part * kBlockSize, block);
    const __m256i q = round_block(block, inverse);
    _mm256_store_si256(reinterpret_cast<__m256i*>(unit.q[part]), q);
    _mm256_store_si256(reinterpret_cast<__m256i*>(unit.magnitudes[part]), _mm256_abs_epi8(q));
    unit.m[part] = static_cast<int16_t>(m);
    std::fill_n(unit.m_of_pairs[part], 16, unit.m[part]);
    std::fill_n(unit.m_of_values[part], kBlockSize, static_cast<uint8_t>(m));
    int sums[4] = {};
    for (int i = 0; i < kBlockSize; ++i) sums[i / 8] += unit.q[part][i];
    for (int h = 0; h < 2; ++h) {
      for (int g = 0; g < 2; ++g) {
        unit.group_sums[h][2 * part + g] = static_cast<int16_t>(sums[2 * h + g]);
      }
      unit.half_sums[h][part] = static_cast<int16_t>(sums[2 * h] + sums[2 * h + 1]);
    }
    unit.sums[part] = static_cast<int16_t>(unit.half_sums[0][part] + unit.half_sums[1][part]);
  }
}

}  // namespace snapkv::cpu

#endif  // x86-64
