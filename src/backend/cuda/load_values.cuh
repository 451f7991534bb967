// SPDX-License-Identifier: MIT
// load_values(): a few values of a weight of any type as f32.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backend/cuda/dequantize_codebooks.cuh"
#include "backend/cuda/launch.cuh"

namespace snapkv::cuda {

constexpr int kLoadedValues = 8;

template <typename S>
constexpr bool is_plain =
    std::is_same_v<S, float> || std::is_same_v<S, __half> || std::is_same_v<S, __nv_bfloat16>;

/// Loads up to 8 values from value i on, a multiple of 8, out of n consecutive ones. `vectors`: all
/// 8 exist, and plain types are 16-byte aligned.
template <typename S>
__device__ __forceinline__ void load_values(const char* from, int64_t i, int64_t n, bool vectors,
                                            float (&v)[kLoadedValues]) {
  if constexpr (is_plain<S>) {
    const S* at = reinterpret_cast<const S*>(from) + i;
    if (vectors) {
      alignas(16) S values[kLoadedValues];
#pragma unroll
      for (size_t k = 0; k < sizeof(values) / 16; ++k) {
        reinterpret_cast<uint4*>(values)[k] = reinterpret_cast<const uint4*>(at)[k];
      }
#pragma unroll
      for (int k = 0; k < kLoadedValues; ++k) v[k] = to_float(values[k]);
    } else {
#pragma unroll
      for (int k = 0; k < kLoadedValues; ++k) v[k] = i + k < n ? to_float(at[k]) : 0.0f;
    }
  } else {
    const char* block = from + i / S::kBlockValues * S::kBlockBytes;
    const int first = static_cast<int>(i % S::kBlockValues);
    uint32_t levels[kLoadedValues / 4];
    S::template levels<PairReader>(block, first, levels);
    const float2 s = S::scale_min(block, first);
#pragma unroll
    for (int k = 0; k < kLoadedValues; ++k) {
      v[k] = s.x * level_at(levels[k / 4], k % 4);
      if constexpr (S::kHasMin) v[k] -= s.y;
    }
  }
}

}  // namespace snapkv::cuda
