// SPDX-License-Identifier: MIT
#include "bench/quantize_codebooks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

#include "base/half.h"
#include "format/codebooks.h"

namespace snapkv {
namespace {

constexpr int kGroup = 8;

/// The entry of a codebook whose bytes, less `offset`, are nearest to n values, and how far it is.
struct Nearest {
  uint32_t entry = 0;
  float distance = 0;
};
template <const auto& codebook>
Nearest nearest(const float* values, float offset = 0.0f) {
  constexpr size_t kLevels = sizeof(codebook[0]);
  constexpr size_t n = codebook.size();
  static const auto levels = [] {  // [kLevels][n] numbers: the search takes all the time
    std::vector<std::array<float, n>> all(kLevels);
    for (size_t e = 0; e < n; ++e) {
      for (size_t k = 0; k < kLevels; ++k) {
        all[k][e] = static_cast<float>(codebook[e] >> (8 * k) & 255);
      }
    }
    return all;
  }();
  static thread_local std::array<float, n> distances;
  distances.fill(0.0f);
  for (size_t k = 0; k < kLevels; ++k) {
    for (size_t e = 0; e < n; ++e) {
      const float difference = values[k] + offset - levels[k][e];
      distances[e] += difference * difference;
    }
  }
  const auto* found = std::min_element(distances.begin(), distances.end());
  const Nearest best = {static_cast<uint32_t>(found - distances.begin()), *found};
  return best;
}

/// Magnitudes of a group divided by a step, and a bit for each that is negative.
struct Group {
  float magnitudes[kGroup];
  uint32_t signs = 0;
};
Group split_signs(const float* x, float step) {
  Group group;
  for (int i = 0; i < kGroup; ++i) {
    group.magnitudes[i] = step > 0.0f ? std::fabs(x[i]) / step : 0.0f;
    group.signs |= static_cast<uint32_t>(x[i] < 0.0f) << i;
  }
  return group;
}
/// The same with an even number of negative values, for which the smallest changes its sign.
Group split_even_signs(const float* x, float step) {
  Group group = split_signs(x, step);
  if (std::popcount(group.signs) % 2 == 0) return group;
  const auto* smallest = std::min_element(group.magnitudes, group.magnitudes + kGroup);
  group.signs ^= 1u << (smallest - group.magnitudes);
  group.magnitudes[smallest - group.magnitudes] *= -1.0f;
  return group;
}

/// Chooses d and the scales 2 k + 1 of n parts, k <= most, so that d * unit * (2 k + 1) is near
/// each part's step.
template <size_t n>
struct Scales {
  f16_t d;
  std::array<uint32_t, n> k{};
  std::array<float, n> exact{};  // d * unit * (2 k + 1)

  Scales(const std::array<float, n>& steps, float unit, int most) {
    const float greatest = *std::max_element(steps.begin(), steps.end());
    d = to_f16(greatest / (unit * static_cast<float>(2 * most + 1)));
    const float one = to_f32(d) * unit;
    for (size_t i = 0; i < n; ++i) {
      const float wanted = one > 0.0f ? (steps[i] / one - 1.0f) / 2.0f : 0.0f;
      k[i] = static_cast<uint32_t>(std::clamp(static_cast<int>(std::round(wanted)), 0, most));
      exact[i] = one * static_cast<float>(2 * k[i] + 1);
    }
  }
};

/// The greatest magnitude of each of n parts becomes `top`.
template <size_t n>
std::array<float, n> steps_of_greatest(const float* x, float top) {
  constexpr size_t kValues = kSuperblockSize / n;
  std::array<float, n> steps;
  for (size_t i = 0; i < n; ++i) {
    float greatest = 0.0f;
    for (size_t j = 0; j < kValues; ++j) {
      greatest = std::max(greatest, std::fabs(x[i * kValues + j]));
    }
    steps[i] = greatest / top;
  }
  return steps;
}

/// 1.5 times the mean magnitude of each of n parts becomes `top`: for three levels and values that
/// are distributed normally this is the best.
template <size_t n>
std::array<float, n> steps_of_mean(const float* x, float top) {
  constexpr size_t kValues = kSuperblockSize / n;
  std::array<float, n> steps;
  for (size_t i = 0; i < n; ++i) {
    float sum = 0.0f;
    for (size_t j = 0; j < kValues; ++j) sum += std::fabs(x[i * kValues + j]);
    steps[i] = 1.5f * sum / static_cast<float>(kValues) / top;
  }
  return steps;
}

uint8_t nibbles(uint32_t low, uint32_t high) { return static_cast<uint8_t>(low | high << 4); }

}  // namespace

void round_block(const float* x, BlockIQ2_XXS& block) {
  const Scales<8> s(steps_of_greatest<8>(x, 43.0f), BlockIQ2_XXS::kScaleUnit, 15);
  block.d = s.d;
  for (int part = 0; part < kSuperblockParts; ++part) {
    uint32_t signs = s.k[part] << 28;
    for (int v = 0; v < 4; ++v) {
      const Group g = split_even_signs(x + part * kBlockSize + v * kGroup, s.exact[part]);
      block.qs[part][v] = static_cast<uint8_t>(nearest<codebooks::kIq2Xxs>(g.magnitudes).entry);
      signs |= (g.signs & 127) << (7 * v);
    }
    std::memcpy(block.qs[part] + 4, &signs, sizeof signs);
  }
}

void round_block(const float* x, BlockIQ2_XS& block) {
  const Scales<16> s(steps_of_greatest<16>(x, 43.0f), BlockIQ2_XS::kScaleUnit, 15);
  block.d = s.d;
  for (int part = 0; part < kSuperblockParts; ++part) {
    block.scales[part] = nibbles(s.k[2 * part], s.k[2 * part + 1]);
    for (int v = 0; v < 4; ++v) {
      const Group g =
          split_even_signs(x + part * kBlockSize + v * kGroup, s.exact[2 * part + v / 2]);
      const uint32_t entry = nearest<codebooks::kIq2Xs>(g.magnitudes).entry;
      block.qs[part][v] = static_cast<uint16_t>(entry | (g.signs & 127) << 9);
    }
  }
}

void round_block(const float* x, BlockIQ2_S& block) {
  const Scales<16> s(steps_of_greatest<16>(x, 43.0f), BlockIQ2_S::kScaleUnit, 15);
  block = {};
  block.d = s.d;
  for (int part = 0; part < kSuperblockParts; ++part) {
    block.scales[part] = nibbles(s.k[2 * part], s.k[2 * part + 1]);
    for (int v = 0; v < 4; ++v) {
      const Group g = split_signs(x + part * kBlockSize + v * kGroup, s.exact[2 * part + v / 2]);
      const uint32_t entry = nearest<codebooks::kIq2S>(g.magnitudes).entry;
      block.qs[part][v] = static_cast<uint8_t>(entry);
      block.qh[part] = static_cast<uint8_t>(block.qh[part] | (entry >> 8) << (2 * v));
      block.signs[part][v] = static_cast<uint8_t>(g.signs);
    }
  }
}

void round_block(const float* x, BlockIQ3_XXS& block) {
  const Scales<8> s(steps_of_greatest<8>(x, 62.0f), BlockIQ3_XXS::kScaleUnit, 15);
  block.d = s.d;
  for (int part = 0; part < kSuperblockParts; ++part) {
    uint32_t signs = s.k[part] << 28;
    for (int v = 0; v < 4; ++v) {
      const Group g = split_even_signs(x + part * kBlockSize + v * kGroup, s.exact[part]);
      for (int h = 0; h < 2; ++h) {
        const uint32_t entry = nearest<codebooks::kIq3Xxs>(g.magnitudes + 4 * h).entry;
        block.qs[part][2 * v + h] = static_cast<uint8_t>(entry);
      }
      signs |= (g.signs & 127) << (7 * v);
    }
    std::memcpy(block.signs[part], &signs, sizeof signs);
  }
}

void round_block(const float* x, BlockIQ3_S& block) {
  const Scales<8> s(steps_of_greatest<8>(x, 15.0f), 1.0f, 15);
  block = {};
  block.d = s.d;
  for (int part = 0; part < kSuperblockParts; ++part) {
    if (part % 2 == 0) block.scales[part / 2] = nibbles(s.k[part], s.k[part + 1]);
    for (int v = 0; v < 4; ++v) {
      const Group g = split_signs(x + part * kBlockSize + v * kGroup, s.exact[part]);
      block.signs[part][v] = static_cast<uint8_t>(g.signs);
      for (int h = 0; h < 2; ++h) {
        const int k = 2 * v + h;
        const uint32_t entry = nearest<codebooks::kIq3S>(g.magnitudes + 4 * h).entry;
        block.qs[part][k] = static_cast<uint8_t>(entry);
        block.qh[part] = static_cast<uint8_t>(block.qh[part] | (entry >> 8) << k);
      }
    }
  }
}

namespace {

/// Entries of iq1_s are 8 (g + 1); levels are these less 7 or, `lower`, 9.
Nearest nearest_ternary(const float* x, float step, bool lower) {
  float levels[kGroup];
  for (int i = 0; i < kGroup; ++i) levels[i] = step > 0.0f ? x[i] / step : 0.0f;
  return nearest<codebooks::kIq1S>(levels, lower ? 9.0f : 7.0f);
}

}  // namespace

void round_block(const float* x, BlockIQ1_S& block) {
  const Scales<8> s(steps_of_mean<8>(x, 8.0f), BlockIQ1_S::kScaleUnit, 7);
  block.d = s.d;
  for (int part = 0; part < kSuperblockParts; ++part) {
    Nearest found[2][4];
    float distance[2] = {};
    for (int lower = 0; lower < 2; ++lower) {
      for (int v = 0; v < 4; ++v) {
        found[lower][v] =
            nearest_ternary(x + part * kBlockSize + v * kGroup, s.exact[part], lower == 1);
        distance[lower] += found[lower][v].distance;
      }
    }
    const int lower = distance[1] < distance[0] ? 1 : 0;
    uint32_t high = s.k[part] << 12 | static_cast<uint32_t>(lower) << 15;
    for (int v = 0; v < 4; ++v) {
      block.qs[part][v] = static_cast<uint8_t>(found[lower][v].entry);
      high |= (found[lower][v].entry >> 8) << (3 * v);
    }
    block.qh[part] = static_cast<uint16_t>(high);
  }
}

void round_block(const float* x, BlockIQ1_M& block) {
  const Scales<16> s(steps_of_mean<16>(x, 8.0f), BlockIQ1_M::kScaleUnit, 7);
  block = {};
  for (int i = 0; i < 4; ++i) {
    block.scales[i] = static_cast<uint16_t>((s.d.bits >> (4 * i) & 15) << 12);
  }
  for (int part = 0; part < kSuperblockParts; ++part) {
    for (int v = 0; v < 4; ++v) {
      const int half = 2 * part + v / 2;
      const float* group = x + part * kBlockSize + v * kGroup;
      const Nearest upper = nearest_ternary(group, s.exact[half], false);
      const Nearest lower = nearest_ternary(group, s.exact[half], true);
      const bool is_lower = lower.distance < upper.distance;
      const uint32_t entry = is_lower ? lower.entry : upper.entry;
      block.qs[part][v] = static_cast<uint8_t>(entry);
      uint8_t& high = block.qh[part][v / 2];
      const uint32_t nibble = entry >> 8 | static_cast<uint32_t>(is_lower) << 3;
      high = static_cast<uint8_t>(high | nibble << (v % 2 * 4));
      uint16_t& scales = block.scales[half / 4];
      if (v % 2 == 0) scales = static_cast<uint16_t>(scales | s.k[half] << (half % 4 * 3));
    }
  }
}

namespace {

/// The digits 0, 1, 2 of 256 values, and the scale of what they stand for.
std::array<uint32_t, kSuperblockSize> ternary_digits(const float* x, f16_t& d) {
  const float step = steps_of_mean<1>(x, 1.0f)[0];
  std::array<uint32_t, kSuperblockSize> digits;
  float sum = 0.0f;
  int n = 0;
  for (int i = 0; i < kSuperblockSize; ++i) {
    const int level = step > 0.0f ? static_cast<int>(std::round(x[i] / step)) : 0;
    digits[i] = static_cast<uint32_t>(std::clamp(level, -1, 1) + 1);
    if (digits[i] == 1) continue;
    sum += std::fabs(x[i]);
    ++n;
  }
  d = to_f16(n > 0 ? sum / static_cast<float>(n) : 0.0f);  // the best for these digits
  return digits;
}

/// The byte whose digits in base 3 these are: f(n) is digit n.
template <typename F>
uint8_t ternary_byte(int n_digits, F f) {
  uint32_t number = 0;
  for (int n = 0; n < 5; ++n) number = 3 * number + (n < n_digits ? f(n) : 0);
  return static_cast<uint8_t>((number * 256 + 242) / 243);
}

}  // namespace

void round_block(const float* x, BlockTQ1_0& block) {
  const auto digits = ternary_digits(x, block.d);
  for (int i = 0; i < 32; ++i) {
    block.qs[i] = ternary_byte(5, [&](int n) { return digits[32 * n + i]; });
  }
  for (int i = 0; i < 16; ++i) {
    block.qs[32 + i] = ternary_byte(5, [&](int n) { return digits[160 + 16 * n + i]; });
  }
  for (int i = 0; i < 4; ++i) {
    block.qh[i] = ternary_byte(4, [&](int n) { return digits[240 + 4 * n + i]; });
  }
}

void round_block(const float* x, BlockTQ2_0& block) {
  const auto digits = ternary_digits(x, block.d);
  std::fill(std::begin(block.qs), std::end(block.qs), uint8_t{0});
  for (int i = 0; i < kSuperblockSize; ++i) {
    uint8_t& four = block.qs[i / 128 * 32 + i % 32];
    four = static_cast<uint8_t>(four | digits[i] << (i / 32 % 4 * 2));
  }
}

}  // namespace snapkv
