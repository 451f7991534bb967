// SPDX-License-Identifier: MIT
// Launches kernels, and has what their code shares: reductions, conversions of single values,
// dynamic shared memory.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "backend/cuda/context.h"

namespace snapkv::cuda {

constexpr int kWarpSize = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

/// The number of blocks of `b` that cover `a`.
__host__ __device__ constexpr int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

inline bool aligned_16(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

struct Grid {
  dim3 blocks;
  dim3 threads;  // per block
  size_t shared_bytes = 0;
};

/// Launches `kernel` on the context's stream. In a decode step that is repeated, grid and arguments
/// must depend only on the step's shape (Backend::begin_step). `early`: see start_early().
template <typename... P>
void launch(const Context& context, const Grid& grid, bool early, void (*kernel)(P...),
            std::type_identity_t<P>... arguments) {
  if (context.skips_launches()) return;
#ifdef SNAPKV_CUDA_ON_HOST
  check(cuda_on_host::launch(grid.blocks, grid.threads, grid.shared_bytes, early, kernel,
                             arguments...),
        "kernel launch");
#else
  if (grid.shared_bytes > 48 * 1024) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(grid.shared_bytes)),
          "cudaFuncSetAttribute");
  }
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = context.stream();
  config.attrs = &attribute;
  config.numAttrs = early && context.overlaps_kernels() ? 1 : 0;
  check(cudaLaunchKernelEx(&config, kernel, arguments...), "kernel launch");
#endif
}

template <typename... P>
void launch(const Context& context, const Grid& grid, void (*kernel)(P...),
            std::type_identity_t<P>... arguments) {
  launch(context, grid, false, kernel, arguments...);
}

/// Launches a kernel that may start while the one before it still runs (programmatic dependent
/// launch), which hides the start of the many short kernels of a decode step. The kernel begins
/// with ptx::let_next_kernel_start() and calls ptx::wait_for_earlier_kernels(); until then it may
/// only read weights, which no kernel writes, and its pointers to what other kernels write are not
/// __restrict__, since such reads could pass through a cache that does not see the writes.
template <typename... P>
void start_early(const Context& context, const Grid& grid, void (*kernel)(P...),
                 std::type_identity_t<P>... arguments) {
  launch(context, grid, true, kernel, arguments...);
}

/// The block's dynamic shared memory, aligned to 128 bytes.
__device__ __forceinline__ char* dynamic_shared() {
#ifdef SNAPKV_CUDA_ON_HOST
  return static_cast<char*>(cuda_on_host::dynamic_shared());
#else
  extern __shared__ __align__(128) char snapkv_dynamic_shared[];
  return snapkv_dynamic_shared;
#endif
}

__device__ __forceinline__ float warp_sum(float v) {
  for (int bits = kWarpSize / 2; bits > 0; bits /= 2) v += __shfl_xor_sync(kAllLanes, v, bits);
  return v;
}
__device__ __forceinline__ float warp_max(float v) {
  for (int bits = kWarpSize / 2; bits > 0; bits /= 2) {
    v = fmaxf(v, __shfl_xor_sync(kAllLanes, v, bits));
  }
  return v;
}

/// One value of a type that is not quantized, to f32 and back (rounded to nearest even).
__device__ __forceinline__ float to_float(float v) { return v; }
__device__ __forceinline__ float to_float(__half v) { return __half2float(v); }
__device__ __forceinline__ float to_float(__nv_bfloat16 v) { return __bfloat162float(v); }

template <typename T>
__device__ __forceinline__ T from_float(float v);
template <>
__device__ __forceinline__ float from_float<float>(float v) {
  return v;
}
template <>
__device__ __forceinline__ __half from_float<__half>(float v) {
  return __float2half_rn(v);
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float v) {
  return __float2bfloat16_rn(v);
}

constexpr float kLog2E = 1.44269504088896340736f;

/// Packs two values into one register, `low` first in memory, rounded to nearest even.
template <typename T>
__device__ __forceinline__ uint32_t pack(float low, float high);
template <>
__device__ __forceinline__ uint32_t pack<__half>(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  uint32_t bits;
  memcpy(&bits, &pair, sizeof(bits));
  return bits;
}
template <>
__device__ __forceinline__ uint32_t pack<__nv_bfloat16>(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  uint32_t bits;
  memcpy(&bits, &pair, sizeof(bits));
  return bits;
}

}  // namespace snapkv::cuda
