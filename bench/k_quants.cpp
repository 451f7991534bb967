// SPDX-License-Identifier: MIT
#include "bench/k_quants.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/half.h"
#include "format/block_types.h"

namespace snapkv {
namespace {

/// x / step to the nearest integer within [low, high]; 0 where step is 0.
int level_of(float x, float step, int low, int high) {
  if (step == 0.0f) return std::clamp(0, low, high);
  return std::clamp(static_cast<int>(std::round(x / step)), low, high);
}

/// Inverse of PartScales::scale() and min().
void put_scale(PartScales& scales, int part, int scale, int min) {
  uint8_t* const b = scales.bytes;
  if (part < 4) {
    b[part] = static_cast<uint8_t>((b[part] & 0xc0) | scale);
    b[4 + part] = static_cast<uint8_t>((b[4 + part] & 0xc0) | min);
    return;
  }
  b[4 + part] = static_cast<uint8_t>((scale & 15) | (min & 15) << 4);
  b[part - 4] = static_cast<uint8_t>((b[part - 4] & 63) | (scale >> 4) << 6);
  b[part] = static_cast<uint8_t>((b[part] & 63) | (min >> 4) << 6);
}

/// Scales and levels of a q4_k or q5_k superblock; the greatest level is max_level.
void quantize_with_min(const float* x, int max_level, PartScales& scales,
                       std::array<int, kSuperblockSize>& levels) {
  std::array<float, kSuperblockParts> step, min;  // value = step * level - min, min >= 0
  for (size_t j = 0; j < step.size(); ++j) {
    const auto [low, high] = std::minmax_element(x + j * kBlockSize, x + (j + 1) * kBlockSize);
    min[j] = std::max(0.0f, -*low);
    step[j] = std::max(0.0f, (*high + min[j]) / static_cast<float>(max_level));
  }
  scales = {};
  scales.d = to_f16(*std::max_element(step.begin(), step.end()) / 63.0f);
  scales.dmin = to_f16(*std::max_element(min.begin(), min.end()) / 63.0f);
  for (size_t j = 0; j < step.size(); ++j) {
    const int scale = level_of(step[j], to_f32(scales.d), 0, 63);
    const int part_min = level_of(min[j], to_f32(scales.dmin), 0, 63);
    put_scale(scales, static_cast<int>(j), scale, part_min);
    const float exact_step = to_f32(scales.d) * static_cast<float>(scale);
    const float exact_min = to_f32(scales.dmin) * static_cast<float>(part_min);
    for (size_t i = j * kBlockSize; i < (j + 1) * kBlockSize; ++i) {
      levels[i] = level_of(x[i] + exact_min, exact_step, 0, max_level);
    }
  }
}

/// Parts 2p and 2p + 1 side by side in nibbles.
void put_nibbles(const std::array<int, kSuperblockSize>& levels, uint8_t* qs) {
  for (size_t i = 0; i < kSuperblockSize / 2; ++i) {
    const size_t low = i / 32 * 64 + i % 32;
    qs[i] = static_cast<uint8_t>((levels[low] & 15) | (levels[low + 32] & 15) << 4);
  }
}

}  // namespace

void quantize_q4_k(const float* x, int64_t n, void* out) {
  auto* block = static_cast<BlockQ4_K*>(out);
  std::array<int, kSuperblockSize> levels;
  for (int64_t i = 0; i < n; i += kSuperblockSize, ++block) {
    quantize_with_min(x + i, 15, block->scales, levels);
    put_nibbles(levels, block->qs);
  }
}

void quantize_q5_k(const float* x, int64_t n, void* out) {
  auto* block = static_cast<BlockQ5_K*>(out);
  std::array<int, kSuperblockSize> levels;
  for (int64_t i = 0; i < n; i += kSuperblockSize, ++block) {
    quantize_with_min(x + i, 31, block->scales, levels);
    put_nibbles(levels, block->qs);
    std::fill(std::begin(block->qh), std::end(block->qh), uint8_t{0});
    for (size_t k = 0; k < levels.size(); ++k) {
      block->qh[k % 32] = static_cast<uint8_t>(block->qh[k % 32] | (levels[k] >> 4) << (k / 32));
    }
  }
}

void quantize_q6_k(const float* x, int64_t n, void* out) {
  auto* block = static_cast<BlockQ6_K*>(out);
  for (int64_t i = 0; i < n; i += kSuperblockSize, x += kSuperblockSize, ++block) {
    std::array<float, 16> step;  // of 16 values each: the extreme becomes -32
    for (size_t s = 0; s < step.size(); ++s) {
      float extreme = 0.0f;
      for (size_t k = 16 * s; k < 16 * (s + 1); ++k) {
        if (std::fabs(x[k]) > std::fabs(extreme)) extreme = x[k];
      }
      step[s] = extreme / -32.0f;
    }
    float greatest = 0.0f;
    for (const float v : step) greatest = std::max(greatest, std::fabs(v));
    *block = {};
    block->d = to_f16(greatest / 127.0f);
    for (size_t s = 0; s < step.size(); ++s) {
      const int scale = level_of(step[s], to_f32(block->d), -128, 127);
      block->scales[s] = static_cast<int8_t>(scale);
      const float exact_step = to_f32(block->d) * static_cast<float>(scale);
      for (size_t k = 16 * s; k < 16 * (s + 1); ++k) {
        const int q = level_of(x[k], exact_step, -32, 31) + 32;
        const size_t half = k / 128, part = k / 32 % 4, at = k % 32;
        uint8_t& low = block->ql[64 * half + 32 * (part % 2) + at];
        uint8_t& high = block->qh[32 * half + at];
        low = static_cast<uint8_t>(low | (q & 15) << (part / 2 * 4));
        high = static_cast<uint8_t>(high | (q >> 4) << (2 * part));
      }
    }
  }
}

}  // namespace snapkv
