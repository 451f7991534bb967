// SPDX-License-Identifier: MIT
// Activations as the AVX-512 VNNI kernels read them: gemv_int8_vnni.cpp, which prepares them and
// explains the order, and gemv_int8_vnni_k.cpp.
#pragma once

#include "backend/cpu/gemv.h"

#if defined(__x86_64__)

#include <cstdint>

#include "backend/cpu/gemv_avx512.h"

// Functions with this run only where has_avx512_vnni().
#define SNAPKV_VNNI \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma,f16c")))
#define SNAPKV_VNNI_INLINE SNAPKV_VNNI __attribute__((always_inline)) inline

namespace snapkv::cpu {

/// 8 blocks of 32 values, two 32-bit lanes each.
struct alignas(64) VnniUnit {
  int8_t q[4][64];
  int32_t negative_sum[16];  // of the activations that each lane multiplies
  float d[16];               // of each lane's block
  /// The same sums times 2^kHalvesBits, for the block's first 16 values (vectors 0 and 1) and its
  /// last in turn: 16 bits hold 8 * 127 * 32.
  int16_t negative_halves[32];
};

inline constexpr int kHalvesBits = 5;
inline constexpr uint32_t kOddWords = 0xaaaaaaaa;  // of 16 bits: the upper half of each lane

/// The kernel of a superblock type; null for others.
GemvFn vnni_superblock_function(DType weight);

}  // namespace snapkv::cpu

#endif  // x86-64
