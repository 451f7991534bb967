// SPDX-License-Identifier: MIT
// The part of CUDA's runtime and device functions that src/backend/cuda uses, on the host: see
// host_device.h.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <tuple>

#include "tests/support/cuda_on_host/host_device.h"

#define SNAPKV_CUDA_ON_HOST 1
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __shared__ static
#define __constant__ static
#define __align__(n) alignas(n)
#define threadIdx (::cuda_on_host::thread_index)
#define blockIdx (::cuda_on_host::block_index)
#define blockDim (::cuda_on_host::block_dim)
#define gridDim (::cuda_on_host::grid_dim)
#define warpSize 32

// ---------------------------------------------------------------- vector types

#define SNAPKV_VECTOR_TYPES(T, name)                                 \
  struct alignas(2 * sizeof(T)) name##2 {                            \
    T x, y;                                                          \
  };                                                                 \
  struct name##3 {                                                   \
    T x, y, z;                                                       \
  };                                                                 \
  struct alignas(4 * sizeof(T)) name##4 {                            \
    T x, y, z, w;                                                    \
  };                                                                 \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; }         \
  inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; } \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
SNAPKV_VECTOR_TYPES(float, float)
SNAPKV_VECTOR_TYPES(int, int)
SNAPKV_VECTOR_TYPES(signed char, char)
SNAPKV_VECTOR_TYPES(unsigned char, uchar)
SNAPKV_VECTOR_TYPES(short, short)
SNAPKV_VECTOR_TYPES(unsigned short, ushort)
#undef SNAPKV_VECTOR_TYPES
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

// ---------------------------------------------------------------- device functions

inline void __syncthreads() { cuda_on_host::sync_block(); }
inline void __syncwarp(unsigned mask = 0xffffffffu) { cuda_on_host::sync_warp(mask); }
inline void __threadfence() {}

template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  const auto slots = cuda_on_host::exchange(mask, &value, sizeof(T));
  const int own = cuda_on_host::lane();
  T out;
  std::memcpy(&out, slots[(own & ~(width - 1)) | (lane & (width - 1))], sizeof(T));
  return out;
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
  return __shfl_sync(mask, value, (cuda_on_host::lane() ^ bits) & (width - 1), width);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, int delta, int width = 32) {
  const int at = (cuda_on_host::lane() & (width - 1)) + delta;
  const T other = __shfl_sync(mask, value, at & (width - 1), width);
  return at < width ? other : value;
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, int delta, int width = 32) {
  const int at = (cuda_on_host::lane() & (width - 1)) - delta;
  const T other = __shfl_sync(mask, value, at & (width - 1), width);
  return at >= 0 ? other : value;
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  const char yes = predicate != 0;
  const auto slots = cuda_on_host::exchange(mask, &yes, 1);
  unsigned bits = 0;
  for (int i = 0; i < 32; ++i) {
    if ((mask >> i & 1) != 0 && slots[i][0] != 0) bits |= 1u << i;
  }
  return bits;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) == mask;
}

// Not atomic, because the threads of a block never run at the same time.
template <typename T>
T atomicAdd(T* p, T value) {
  const T old = *p;
  *p = old + value;
  return old;
}
template <typename T>
T atomicMax(T* p, T value) {
  const T old = *p;
  *p = std::max(old, value);
  return old;
}

template <typename T>
T __ldg(const T* p) {
  return *p;
}
template <typename T>
T __ldcs(const T* p) {
  return *p;
}
inline int __popc(unsigned v) { return std::popcount(v); }
inline int __clz(int v) { return std::countl_zero(static_cast<unsigned>(v)); }
inline int __ffs(int v) { return v == 0 ? 0 : std::countr_zero(static_cast<unsigned>(v)) + 1; }
inline float __int_as_float(int v) { return std::bit_cast<float>(v); }
inline int __float_as_int(float v) { return std::bit_cast<int>(v); }
inline float __uint_as_float(unsigned v) { return std::bit_cast<float>(v); }
inline unsigned __float_as_uint(float v) { return std::bit_cast<unsigned>(v); }
inline float __expf(float v) { return std::exp(v); }
inline float __logf(float v) { return std::log(v); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float v) { return 1.0f / std::sqrt(v); }
inline float __frcp_rn(float v) { return 1.0f / v; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline int __float2int_rn(float v) { return static_cast<int>(std::nearbyint(v)); }
inline void sincospi(double x, double* s, double* c) {
  *s = std::sin(x * 3.14159265358979323846);
  *c = std::cos(x * 3.14159265358979323846);
}
using std::max;
using std::min;
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) {
    c += static_cast<int8_t>(a >> 8 * i) * static_cast<int8_t>(b >> 8 * i);
  }
  return c;
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const uint64_t all = static_cast<uint64_t>(b) << 32 | a;
  unsigned out = 0;
  for (int i = 0; i < 4; ++i) {
    out |= static_cast<unsigned>(all >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  }
  return out;
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}
// Works on each byte.
inline int __vsubss4(int a, int b) {
  unsigned out = 0;
  for (int i = 0; i < 4; ++i) {
    const int d = static_cast<int8_t>(a >> 8 * i) - static_cast<int8_t>(b >> 8 * i);
    out |= (static_cast<unsigned>(std::clamp(d, -128, 127)) & 0xff) << 8 * i;
  }
  return static_cast<int>(out);
}

// ---------------------------------------------------------------- runtime

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorStreamCaptureUnsupported = 900,
};
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault,
};
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2;
constexpr unsigned cudaHostAllocDefault = 0;
using cudaStream_t = struct cuda_on_host_stream*;
using cudaEvent_t = struct cuda_on_host_event*;
using cudaGraph_t = struct cuda_on_host_graph*;
using cudaGraphExec_t = struct cuda_on_host_graph*;
using cudaMemPool_t = struct cuda_on_host_pool*;
enum cudaMemAllocationType { cudaMemAllocationTypePinned };
enum cudaMemLocationType { cudaMemLocationTypeDevice };
struct cudaMemPoolProps {
  cudaMemAllocationType allocType;
  struct {
    cudaMemLocationType type;
    int id;
  } location;
};
enum cudaMemPoolAttr {
  cudaMemPoolAttrReleaseThreshold,
  cudaMemPoolAttrReservedMemCurrent,
  cudaMemPoolAttrUsedMemCurrent,
};
struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem;
  size_t sharedMemPerBlockOptin;
  int multiProcessorCount;
  int major, minor;
};
struct cudaLaunchAttribute {};
struct cudaLaunchConfig_t {
  dim3 gridDim_, blockDim_;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};

cudaError_t cudaGetDeviceCount(int* n);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device);
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes);
cudaError_t cudaMallocFromPoolAsync(void** p, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream);
cudaError_t cudaFreeAsync(void* p, cudaStream_t stream);
cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* p);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
const char* cudaGetErrorString(cudaError_t error);

template <typename T>
cudaError_t cudaFuncSetAttribute(T*, cudaFuncAttribute, int) {
  return cudaSuccess;
}

namespace cuda_on_host {
void submit_work(std::function<void()> work);
}

namespace cuda_on_host {
/// Takes the place of cudaLaunchKernelEx.
template <typename... P>
cudaError_t launch(dim3 grid, dim3 block, size_t shared_bytes, bool early, void (*kernel)(P...),
                   std::type_identity_t<P>... arguments) {
  submit_work([=] {
    run_grid(grid, block, shared_bytes, [&] {
      kernel(arguments...);
      if (early) check_waited();
    });
  });
  return cudaSuccess;
}
}  // namespace cuda_on_host
