// SPDX-License-Identifier: MIT
// Activations as the AVX-512 VNNI kernels read them: gemv_int8_vnni.cpp, which prepares them and
// explains the order, and gemv_int8_vnni_k.cpp.
#pragma once

#include "backend/cpu/gemv.h"

#if defined(__x86_64__)

#include <cstdint>

#include "backend/cpu/gemv_avx512.h"
#include "backend/cpu/superblocks_x86.h"

namespace snapkv::cpu {

/// 8 blocks of 32 values, two 32-bit lanes each. (Not 512 bytes: the rows of a batch, a power of
/// two apart, would share their places in the L1 cache.)
struct alignas(64) VnniUnit {
  int8_t q[4][64];
  float d[16];  // of each lane's block
  /// Sums of the activations that each lane multiplies, times -1: of its block's first 16 values
  /// (vectors 0 and 1) and of its last in turn.
  int16_t negative_sums[32];
  float sum[16];  // d * sum of each block, in order; then zeros
};
static_assert(sizeof(VnniUnit) == 448);

/// First of the two neighbouring lanes of a block.
constexpr int lane_of(int block) { return block < 4 ? 4 * block : 4 * (block - 4) + 2; }

/// The kernel of a superblock type; null for others.
GemvFn vnni_superblock_function(DType weight);

}  // namespace snapkv::cpu

#endif  // x86-64
