// SPDX-License-Identifier: MIT
// Finds NaN and infinities among numbers that will be ranked, compared or averaged. Used wherever a
// model's numbers leave the arithmetic: logits (engine/finite_check.h), scores of policies
// (policy/finite_scores.h) and metrics (eval).
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace snapkv {

/// The values that are NaN or infinite.
struct NonFinite {
  int64_t count = 0;
  int64_t first = -1;  ///< index of the first one
  float value = 0.0f;  ///< the first one
  explicit operator bool() const { return count > 0; }
};

/// Reads the values once, at the speed of memory, when all are finite.
NonFinite find_non_finite(std::span<const float> values);

/// "NaN", "inf" or "-inf"; of a finite value its digits.
std::string non_finite_name(double value);

}  // namespace snapkv
