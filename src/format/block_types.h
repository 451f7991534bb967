// SPDX-License-Identifier: MIT
// Layouts of GGUF's block types (little endian, as in the file), 32 values a block.
#pragma once

#include <cstdint>

#include "base/half.h"

namespace snapkv {

inline constexpr int kBlockSize = 32;

/// value[i] = d * qs[i]
struct BlockQ8_0 {
  f16_t d;
  int8_t qs[kBlockSize];
};
static_assert(sizeof(BlockQ8_0) == 34);

/// value[i] = d * ((qs[i] & 15) - 8) for i < 16; value[16 + i] = d * ((qs[i] >> 4) - 8)
struct BlockQ4_0 {
  f16_t d;
  uint8_t qs[kBlockSize / 2];
};
static_assert(sizeof(BlockQ4_0) == 18);

}  // namespace snapkv
