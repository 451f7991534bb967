// SPDX-License-Identifier: MIT
// Activations in 8 bits, block after block, as gemv_int8_portable.cpp reads them.
#pragma once

#include <cstdint>

#include "backend/cpu/products/few_rows/gemv.h"
#include "format/block_types.h"

namespace snapkv::cpu {

inline constexpr int64_t kPlainUnitBlocks = kGemvUnit / kBlockSize;

struct alignas(64) PlainUnit {
  int8_t q[kPlainUnitBlocks][kBlockSize];
  float d[kPlainUnitBlocks];
  float sum[kPlainUnitBlocks];
  int16_t half_sums[2 * kPlainUnitBlocks];
};

/// value[i] = d * q[i], with d = max|x| / 127 of each block and q rounded to nearest even. Minima
/// multiply sum = d * (sum of q) or half_sums, the sums of 16 q each.
void prepare_plain_unit(const float* x, int64_t n, void* unit);

/// The unit that contains block b of activation row t.
inline const PlainUnit& plain_unit(const GemvCall& c, int t, int64_t b) {
  return reinterpret_cast<const PlainUnit*>(c.x + t * c.x_stride)[b / kPlainUnitBlocks];
}

}  // namespace snapkv::cpu
