// SPDX-License-Identifier: MIT
#include "bench/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/half.h"
#include "bench/quantize_codebooks.h"
#include "format/block_types.h"

namespace snapkv {
namespace {

// round_block(x, block) sets a block to the values x[0], x[1], ...

template <typename Element>
void round_block(const float* x, PlainBlock<Element>& block) {
  block.element = from_f32<Element>(*x);
}

// ---------------------------------------------------------------- blocks of 32 values

void round_block(const float* x, BlockQ8_0& block) {
  float greatest = 0.0f;
  for (int i = 0; i < kBlockSize; ++i) greatest = std::max(greatest, std::fabs(x[i]));
  const float d = greatest / 127.0f;
  const float inverse = d != 0.0f ? 1.0f / d : 0.0f;
  block.d = to_f16(d);
  for (int i = 0; i < kBlockSize; ++i) {
    block.qs[i] = static_cast<int8_t>(std::round(x[i] * inverse));
  }
}

/// The value of largest magnitude, including its sign.
float extreme(const float* x, int n) {
  float found = 0.0f;
  for (int i = 0; i < n; ++i) {
    if (std::fabs(x[i]) > std::fabs(found)) found = x[i];
  }
  return found;
}

/// The levels of a block whose extreme value gets the lowest level, -n_below.
std::array<int, kBlockSize> levels_from_extreme(const float* x, int n_below, f16_t& scale) {
  const float d = extreme(x, kBlockSize) / static_cast<float>(-n_below);
  const float inverse = d != 0.0f ? 1.0f / d : 0.0f;
  scale = to_f16(d);
  std::array<int, kBlockSize> levels;
  for (int i = 0; i < kBlockSize; ++i) {  // rounds half up, as ggml does
    const float shifted = x[i] * inverse + static_cast<float>(n_below) + 0.5f;
    levels[i] = std::min(2 * n_below - 1, static_cast<int>(shifted));
  }
  return levels;
}

/// Puts values 0 ... 15 into the low nibbles and 16 ... 31 into the high ones.
void put_nibbles(const std::array<int, kBlockSize>& levels, uint8_t* qs) {
  for (int i = 0; i < kBlockSize / 2; ++i) {
    qs[i] = static_cast<uint8_t>((levels[i] & 15) | (levels[i + kBlockSize / 2] & 15) << 4);
  }
}

void round_block(const float* x, BlockQ4_0& block) {
  put_nibbles(levels_from_extreme(x, 8, block.d), block.qs);
}

/// The levels of a block, from level 0 for its lowest value to max_level for its highest.
std::array<int, kBlockSize> levels_from_lowest(const float* x, int max_level, f16_t& scale,
                                               f16_t& lowest) {
  const auto [low, high] = std::minmax_element(x, x + kBlockSize);
  const float d = (*high - *low) / static_cast<float>(max_level);
  const float inverse = d != 0.0f ? 1.0f / d : 0.0f;
  scale = to_f16(d);
  lowest = to_f16(*low);
  std::array<int, kBlockSize> levels;
  for (int i = 0; i < kBlockSize; ++i) {
    levels[i] = std::min(max_level, static_cast<int>((x[i] - *low) * inverse + 0.5f));
  }
  return levels;
}

void put_fifth_bits(const std::array<int, kBlockSize>& levels, uint8_t* qh) {
  std::fill(qh, qh + kBlockSize / 8, uint8_t{0});
  for (int i = 0; i < kBlockSize; ++i) {
    qh[i / 8] = static_cast<uint8_t>(qh[i / 8] | (levels[i] >> 4) << (i % 8));
  }
}

void round_block(const float* x, BlockQ4_1& block) {
  put_nibbles(levels_from_lowest(x, 15, block.d, block.m), block.qs);
}

void round_block(const float* x, BlockQ5_0& block) {
  const std::array<int, kBlockSize> levels = levels_from_extreme(x, 16, block.d);
  put_nibbles(levels, block.qs);
  put_fifth_bits(levels, block.qh);
}

void round_block(const float* x, BlockQ5_1& block) {
  const std::array<int, kBlockSize> levels = levels_from_lowest(x, 31, block.d, block.m);
  put_nibbles(levels, block.qs);
  put_fifth_bits(levels, block.qh);
}

/// The place of the level nearest to `value` in a table of 16.
int nearest_place(float value, const int8_t* table) {
  const auto nearer = [value](int8_t a, int8_t b) {
    return std::fabs(value - a) < std::fabs(value - b);
  };
  return static_cast<int>(std::min_element(table, table + 16, nearer) - table);
}

/// The same for 32 values times `inverse`.
std::array<int, kBlockSize> nearest_places(const float* x, float inverse, const int8_t* table) {
  std::array<int, kBlockSize> places;
  for (int i = 0; i < kBlockSize; ++i) places[i] = nearest_place(x[i] * inverse, table);
  return places;
}

void round_block(const float* x, BlockIQ4_NL& block) {
  const float d = extreme(x, kBlockSize) / static_cast<float>(BlockIQ4_NL::kLevels[0]);
  block.d = to_f16(d);
  put_nibbles(nearest_places(x, d != 0.0f ? 1.0f / d : 0.0f, BlockIQ4_NL::kLevels), block.qs);
}

/// The greatest FP4 number is 6 = 1.5 * 2^2, so the scale's exponent is 2 below the extreme's.
void round_block(const float* x, BlockMXFP4& block) {
  const float greatest = std::fabs(extreme(x, kBlockSize));
  block.e = static_cast<uint8_t>(
      greatest > 0.0f ? std::clamp(std::ilogb(greatest) - 2 + 127, 0, 254) : 0);
  put_nibbles(nearest_places(x, 1.0f / BlockMXFP4::scale(block.e), BlockMXFP4::kLevels), block.qs);
}

/// The code of the positive E4M3 number nearest to `value`, halves up; numbers end at 448.
uint8_t to_e4m3(float value) {
  int best = 0;
  for (int code = 1; code < 0x7f; ++code) {  // ascending; BlockNVFP4 halves them
    const float of_code = 2.0f * BlockNVFP4::scale(static_cast<uint8_t>(code));
    const float of_best = 2.0f * BlockNVFP4::scale(static_cast<uint8_t>(best));
    if (std::fabs(of_code - value) <= std::fabs(of_best - value)) best = code;
  }
  return static_cast<uint8_t>(best);
}

/// The greatest FP4 number is 6.
void round_block(const float* x, BlockNVFP4& block) {
  block = {};
  for (int s = 0; s < BlockNVFP4::kScales; ++s, x += BlockNVFP4::kScaleValues) {
    block.scales[s] = to_e4m3(std::fabs(extreme(x, BlockNVFP4::kScaleValues)) / 6.0f);
    const float d = BlockNVFP4::scale(block.scales[s]);
    const float inverse = d > 0.0f ? 1.0f / d : 0.0f;
    for (int i = 0; i < BlockNVFP4::kScaleValues; ++i) {
      const int place = nearest_place(x[i] * inverse, BlockMXFP4::kLevels);
      uint8_t& both = block.qs[8 * s + i % 8];
      both = static_cast<uint8_t>(both | place << (i / 8 * 4));
    }
  }
}

// ---------------------------------------------------------------- superblocks

/// x / step rounded to the nearest integer in [low, high]; 0 if step is 0.
int level_of(float x, float step, int low, int high) {
  if (step == 0.0f) return std::clamp(0, low, high);
  return std::clamp(static_cast<int>(std::round(x / step)), low, high);
}

/// Puts the 2 bits of level 128 h + 32 j + i into bits 2 j and 2 j + 1 of qs[32 h + i].
void put_pairs(const std::array<int, kSuperblockSize>& levels, uint8_t* qs) {
  std::fill(qs, qs + kSuperblockSize / 4, uint8_t{0});
  for (int i = 0; i < kSuperblockSize; ++i) {
    uint8_t& four = qs[i / 128 * 32 + i % 32];
    four = static_cast<uint8_t>(four | (levels[i] & 3) << (i / 32 % 4 * 2));
  }
}

void round_block(const float* x, BlockQ2_K& block) {
  std::array<float, 16> step, min;  // for 16 values each: step * level - min, min >= 0
  for (size_t s = 0; s < step.size(); ++s) {
    const auto [low, high] = std::minmax_element(x + 16 * s, x + 16 * (s + 1));
    min[s] = std::max(0.0f, -*low);
    step[s] = std::max(0.0f, (*high + min[s]) / 3.0f);
  }
  block.d = to_f16(*std::max_element(step.begin(), step.end()) / 15.0f);
  block.dmin = to_f16(*std::max_element(min.begin(), min.end()) / 15.0f);
  std::array<int, kSuperblockSize> levels;
  for (size_t s = 0; s < step.size(); ++s) {
    const int scale = level_of(step[s], to_f32(block.d), 0, 15);
    const int low = level_of(min[s], to_f32(block.dmin), 0, 15);
    block.scales[s] = static_cast<uint8_t>(scale | low << 4);
    const float exact_step = to_f32(block.d) * static_cast<float>(scale);
    const float exact_min = to_f32(block.dmin) * static_cast<float>(low);
    for (size_t i = 16 * s; i < 16 * (s + 1); ++i) {
      levels[i] = level_of(x[i] + exact_min, exact_step, 0, 3);
    }
  }
  put_pairs(levels, block.qs);
}

/// The inverse of Block<q3_k>::scale(), for 16 scales.
void put_scales(const std::array<int, 16>& scales, uint8_t* bytes) {
  std::fill(bytes, bytes + 12, uint8_t{0});
  for (int k = 0; k < 16; ++k) {
    const int scale = scales[k] + 32;
    bytes[k % 8] = static_cast<uint8_t>(bytes[k % 8] | (scale & 15) << (k / 8 * 4));
    uint8_t& high = bytes[8 + k % 4];
    high = static_cast<uint8_t>(high | (scale >> 4) << (k / 4 * 2));
  }
}

void round_block(const float* x, BlockQ3_K& block) {
  std::array<float, 16> step;  // for 16 values each; the extreme becomes -4
  float greatest = 0.0f;
  for (size_t s = 0; s < step.size(); ++s) {
    step[s] = extreme(x + 16 * s, 16) / -4.0f;
    greatest = std::max(greatest, std::fabs(step[s]));
  }
  block = {};
  block.d = to_f16(greatest / 31.0f);
  std::array<int, 16> scales;
  std::array<int, kSuperblockSize> levels;  // counted from 0
  for (size_t s = 0; s < step.size(); ++s) {
    scales[s] = level_of(step[s], to_f32(block.d), -32, 31);
    const float exact_step = to_f32(block.d) * static_cast<float>(scales[s]);
    for (size_t i = 16 * s; i < 16 * (s + 1); ++i) {
      levels[i] = level_of(x[i], exact_step, -4, 3) + 4;
      uint8_t& mask = block.hmask[i % 32];
      mask = static_cast<uint8_t>(mask | (levels[i] >> 2) << (i / 32));
    }
  }
  put_pairs(levels, block.qs);
  put_scales(scales, block.scales);
}

/// The inverse of PartScales::scale() and min().
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

/// Sets the scales of a q4_k or q5_k superblock and returns its levels; the greatest is max_level.
std::array<int, kSuperblockSize> levels_with_min(const float* x, int max_level,
                                                 PartScales& scales) {
  std::array<float, kSuperblockParts> step, min;  // value = step * level - min, min >= 0
  for (size_t j = 0; j < step.size(); ++j) {
    const auto [low, high] = std::minmax_element(x + j * kBlockSize, x + (j + 1) * kBlockSize);
    min[j] = std::max(0.0f, -*low);
    step[j] = std::max(0.0f, (*high + min[j]) / static_cast<float>(max_level));
  }
  scales = {};
  scales.d = to_f16(*std::max_element(step.begin(), step.end()) / 63.0f);
  scales.dmin = to_f16(*std::max_element(min.begin(), min.end()) / 63.0f);
  std::array<int, kSuperblockSize> levels;
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
  return levels;
}

/// Puts parts 2p and 2p + 1 side by side into nibbles.
void put_nibbles(const std::array<int, kSuperblockSize>& levels, uint8_t* qs) {
  for (size_t i = 0; i < kSuperblockSize / 2; ++i) {
    const size_t low = i / 32 * 64 + i % 32;
    qs[i] = static_cast<uint8_t>((levels[low] & 15) | (levels[low + 32] & 15) << 4);
  }
}

void round_block(const float* x, BlockQ4_K& block) {
  put_nibbles(levels_with_min(x, 15, block.scales), block.qs);
}

void round_block(const float* x, BlockQ5_K& block) {
  const std::array<int, kSuperblockSize> levels = levels_with_min(x, 31, block.scales);
  put_nibbles(levels, block.qs);
  std::fill(std::begin(block.qh), std::end(block.qh), uint8_t{0});
  for (size_t k = 0; k < levels.size(); ++k) {
    block.qh[k % 32] = static_cast<uint8_t>(block.qh[k % 32] | (levels[k] >> 4) << (k / 32));
  }
}

void round_block(const float* x, BlockQ6_K& block) {
  std::array<float, 16> step;  // for 16 values each; the extreme becomes -32
  float greatest = 0.0f;
  for (size_t s = 0; s < step.size(); ++s) {
    step[s] = extreme(x + 16 * s, 16) / -32.0f;
    greatest = std::max(greatest, std::fabs(step[s]));
  }
  block = {};
  block.d = to_f16(greatest / 127.0f);
  for (size_t s = 0; s < step.size(); ++s) {
    const int scale = level_of(step[s], to_f32(block.d), -128, 127);
    block.scales[s] = static_cast<int8_t>(scale);
    const float exact_step = to_f32(block.d) * static_cast<float>(scale);
    for (size_t k = 16 * s; k < 16 * (s + 1); ++k) {
      const int q = level_of(x[k], exact_step, -32, 31) + 32;
      const size_t half = k / 128, part = k / 32 % 4, at = k % 32;
      uint8_t& low = block.ql[64 * half + 32 * (part % 2) + at];
      uint8_t& high = block.qh[32 * half + at];
      low = static_cast<uint8_t>(low | (q & 15) << (part / 2 * 4));
      high = static_cast<uint8_t>(high | (q >> 4) << (2 * part));
    }
  }
}

void round_block(const float* x, BlockIQ4_XS& block) {
  std::array<float, kSuperblockParts> step;  // the extreme becomes the table's lowest level
  float greatest = 0.0f;
  for (size_t j = 0; j < step.size(); ++j) {
    step[j] = extreme(x + j * kBlockSize, kBlockSize) / static_cast<float>(BlockIQ4_NL::kLevels[0]);
    greatest = std::max(greatest, std::fabs(step[j]));
  }
  block = {};
  block.d = to_f16(greatest / 31.0f);
  for (size_t j = 0; j < step.size(); ++j) {
    const int scale = level_of(step[j], to_f32(block.d), -32, 31);
    const float exact_step = to_f32(block.d) * static_cast<float>(scale);
    const float inverse = exact_step != 0.0f ? 1.0f / exact_step : 0.0f;
    put_nibbles(nearest_places(x + j * kBlockSize, inverse, BlockIQ4_NL::kLevels),
                block.qs + j * kBlockSize / 2);
    uint8_t& low = block.scales_l[j / 2];
    low = static_cast<uint8_t>(low | ((scale + 32) & 15) << (j % 2 * 4));
    block.scales_h = static_cast<uint16_t>(block.scales_h | (scale + 32) >> 4 << (2 * j));
  }
}

}  // namespace

void quantize(DType dtype, const float* x, int64_t n, void* out) {
  SNAPKV_CHECK(n % block_size(dtype) == 0);
  visit_weight_type(dtype, [=](auto type) {
    auto* block = static_cast<Block<type.dtype>*>(out);
    for (int64_t i = 0; i < n; i += block_size(type.dtype)) round_block(x + i, *block++);
  });
}

}  // namespace snapkv
