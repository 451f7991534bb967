// SPDX-License-Identifier: MIT
// Finds NaN and infinities among numbers that will be ranked, compared or averaged: logits
// (engine/finite_check.h), scores of policies (policy/finite_scores.h) and metrics (eval).
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace snapkv {

/// The values that are NaN or infinite.
struct NonFinite {
  int64_t count = 0;
  int64_t first = -1;  ///< index of the first one
  float value = 0.0f;  ///< value of the first one
  explicit operator bool() const { return count > 0; }
};

/// If all values are finite, reads them once, at the speed of memory.
NonFinite find_non_finite(std::span<const float> values);

/// "NaN", "inf" or "-inf"; the digits of a finite value.
std::string non_finite_name(double value);

}  // namespace snapkv
