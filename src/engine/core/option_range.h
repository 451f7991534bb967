// SPDX-License-Identifier: MIT
// Range checks for numbers in option structs.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "snapkv/limits.h"

namespace snapkv {

/// Throws Error{kUsage} naming field, value and range unless low <= value <= high.
inline void require_range(const char* field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return;
  fail(ErrorCode::kUsage, "{} is {}; it must be from {} to {}", OptionName(field), value, low,
       high);
}

}  // namespace snapkv
