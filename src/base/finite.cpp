// SPDX-License-Identifier: MIT
#include "base/finite.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace snapkv {
namespace {

constexpr uint32_t kInfinity = 0x7f800000u;  // the bits of +inf; those of NaNs are above

uint32_t magnitude_bits(float value) { return std::bit_cast<uint32_t>(value) & 0x7fffffffu; }

}  // namespace

NonFinite find_non_finite(std::span<const float> values) {
  uint32_t largest = 0;  // integer maximum: vectorized even without -ffast-math
  for (const float value : values) largest = std::max(largest, magnitude_bits(value));
  NonFinite found;
  if (largest < kInfinity) return found;
  for (int64_t i = 0; i < std::ssize(values); ++i) {
    if (magnitude_bits(values[i]) < kInfinity) continue;
    if (found.count++ > 0) continue;
    found.first = i;
    found.value = values[i];
  }
  return found;
}

std::string non_finite_name(double value) {
  if (std::isnan(value)) return "NaN";  // {fmt} would print a NaN's meaningless sign
  return fmt::format("{}", value);
}

}  // namespace snapkv
