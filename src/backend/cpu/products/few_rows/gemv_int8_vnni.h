// SPDX-License-Identifier: MIT
// Activations as the AVX-512 VNNI kernels read them; gemv_int8_vnni.cpp explains the order.
#pragma once

#include "backend/cpu/products/few_rows/gemv.h"

#if defined(__x86_64__)

#include <cstdint>

#include "backend/cpu/products/few_rows/gemv_avx512.h"
#include "backend/cpu/weights/types_x86.h"

namespace snapkv::cpu {

/// 8 blocks of 32 values, in two 32-bit lanes each. (Not 512 bytes: the rows of a batch would then
/// be a power of two apart and share places in the L1 cache.)
struct alignas(64) VnniUnit {
  int8_t q[4][64];
  float d[16];  // of each lane's block
  /// Negated sums of the activations that each lane multiplies: of its block's first 16 values
  /// (vectors 0 and 1) and of its last 16, alternating.
  int16_t negative_sums[32];
  float sum[16];  // d * sum of each block, in order; then zeros
};
static_assert(sizeof(VnniUnit) == 448);

/// First of a block's two adjacent lanes.
constexpr int lane_of(int block) { return block < 4 ? 4 * block : 4 * (block - 4) + 2; }

/// The kernel of a superblock type; null for others.
GemvFn vnni_superblock_function(DType weight);

}  // namespace snapkv::cpu

#endif  // x86-64
