// SPDX-License-Identifier: MIT
// Decode's attention without tensor cores, for rows of any type and any head_dim, with f32 sums.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backend/cuda/decode_split.cuh"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/ptx.cuh"
#include "format/block_types.h"

namespace snapkv::cuda::decode {

constexpr int kPlainThreads = 128;

__device__ __forceinline__ void load_values(const float* row, int d, float (&v)[4]) {
  const float4 x = *reinterpret_cast<const float4*>(row + d);
  v[0] = x.x, v[1] = x.y, v[2] = x.z, v[3] = x.w;
}
template <typename T>
__device__ __forceinline__ void load_values(const T* row, int d, float (&v)[1]) {
  v[0] = to_float(row[d]);
}
__device__ __forceinline__ void load_values(const BlockQ8_0* row, int d, float (&v)[1]) {
  const BlockQ8_0& block = row[d / kBlockSize];
  v[0] = to_float(__ushort_as_half(block.d.bits)) * static_cast<float>(block.qs[d % kBlockSize]);
}
/// Number of elements of Kv's type in a row.
template <typename Kv>
__device__ __forceinline__ int64_t row_elements(int head_dim) {
  return std::is_same_v<Kv, BlockQ8_0> ? head_dim / kBlockSize : head_dim;
}

/// Sums v[i] over the lanes, for all n of them at once: v[0] of lane l becomes the sum of i = l /
/// (32 / n). Of the kLeft * 2 sums that it still has, each lane passes half to the lane whose
/// number differs by kBits.
template <int n, int kBits = kWarpSize / 2, int kLeft = n / 2>
__device__ __forceinline__ void sum_values(float (&v)[n], int lane) {
  if constexpr (kLeft == 0) {
    v[0] += __shfl_xor_sync(kAllLanes, v[0], kBits);
  } else {
    const bool upper = (lane & kBits) != 0;
#pragma unroll
    for (int i = 0; i < kLeft; ++i) {
      const float low = v[i], high = v[i + kLeft];
      v[i] = (upper ? high : low) + __shfl_xor_sync(kAllLanes, upper ? low : high, kBits);
    }
  }
  if constexpr (kBits > 1) sum_values<n, kBits / 2, kLeft / 2>(v, lane);
}

/// Shared memory of a block, in floats: q [kGroup][head_dim], p [kGroup][kSplitStep], acc
/// [kGroup][n_columns]. A row's columns are repeated n_slices times if threads would otherwise be
/// idle.
struct PlainShape {
  int n_slices, n_columns;
  __host__ __device__ explicit PlainShape(int value_dim)
      : n_slices(value_dim < kPlainThreads ? kPlainThreads / value_dim : 1),
        n_columns(n_slices * value_dim) {}
};

// Tiles of kSplitStep rows. Scores: a warp takes a few rows at once, with its lanes along head_dim.
// Then each thread takes columns of V.
template <typename Kv, int kVec, int kGroup>
__global__ void __launch_bounds__(kPlainThreads) plain_kernel(const DecodeArguments a) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  constexpr int kRows = kGroup > 8 ? 2 : 4;  // rows that a warp takes at once
  constexpr int kWarps = kPlainThreads / kWarpSize;
  __shared__ float maxima[kGroup], sums[kGroup], factors[kGroup];
  const Work w = block_work<kGroup>(a);
  if (w.begin >= w.end) return;
  const PlainShape shape(a.value_dim);
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int64_t stride = row_elements<Kv>(a.head_dim);
  const int64_t v_stride = a.v_step / static_cast<int64_t>(sizeof(Kv));
  const auto* k = static_cast<const Kv*>(w.rows.k);
  const auto* v = static_cast<const Kv*>(w.rows.v);
  float* q = reinterpret_cast<float*>(dynamic_shared());
  float* p = q + kGroup * a.head_dim;
  float* acc = p + kGroup * kSplitStep;
  for (int i = threadIdx.x; i < kGroup * a.head_dim; i += kPlainThreads) {
    q[i] = i < w.n_queries * a.head_dim ? a.q[w.head * a.head_dim + i] * a.scale : 0.0f;
  }
  for (int i = threadIdx.x; i < kGroup * shape.n_columns; i += kPlainThreads) acc[i] = 0.0f;
  if (threadIdx.x < kGroup) {
    maxima[threadIdx.x] = -INFINITY;
    sums[threadIdx.x] = 0.0f;
  }
  __syncthreads();

  for (int row = w.begin; row < w.end; row += kSplitStep) {
    const int n = min(kSplitStep, w.end - row);
    for (int r = warp * kRows; r < kSplitStep; r += kWarps * kRows) {
      float dot[kRows * kGroup];
#pragma unroll
      for (int i = 0; i < kRows * kGroup; ++i) dot[i] = 0.0f;
      for (int d = lane * kVec; d < a.head_dim; d += kWarpSize * kVec) {
        float x[kRows][kVec];
#pragma unroll
        for (int i = 0; i < kRows; ++i)
          load_values(k + (row + min(r + i, n - 1)) * stride, d, x[i]);
#pragma unroll
        for (int j = 0; j < kGroup; ++j) {
          float y[kVec];
          load_values(q + j * a.head_dim, d, y);
#pragma unroll
          for (int i = 0; i < kRows; ++i) {
#pragma unroll
            for (int c = 0; c < kVec; ++c) dot[i * kGroup + j] += x[i][c] * y[c];
          }
        }
      }
      constexpr int kShare = kWarpSize / (kRows * kGroup);  // lanes that hold the same sum
      sum_values(dot, lane);
      const int i = lane / kShare / kGroup, j = lane / kShare % kGroup;
      if (lane % kShare == 0) {
        p[j * kSplitStep + r + i] = r + i < n ? a.variant.capped(dot[0]) : -INFINITY;
      }
    }
    __syncthreads();
    for (int j = warp; j < kGroup; j += kWarps) {
      float* s = p + j * kSplitStep;
      const float before = maxima[j];
      const float max = fmaxf(before, warp_max(fmaxf(s[lane], s[lane + kWarpSize])));
      const float from = reference(max);
      s[lane] = exp2f(s[lane] - from);
      s[lane + kWarpSize] = exp2f(s[lane + kWarpSize] - from);
      const float sum = warp_sum(s[lane] + s[lane + kWarpSize]);
      if (lane == 0) {
        factors[j] = exp2f(before - from);
        sums[j] = sums[j] * factors[j] + sum;
        maxima[j] = max;
      }
    }
    __syncthreads();
    for (int column = threadIdx.x; column < shape.n_columns; column += kPlainThreads) {
      float sum[kGroup];
#pragma unroll
      for (int j = 0; j < kGroup; ++j) sum[j] = acc[j * shape.n_columns + column] * factors[j];
      const int d = column % a.value_dim;
#pragma unroll 4
      for (int r = column / a.value_dim; r < n; r += shape.n_slices) {
        float x[1];
        load_values(v + (row + r) * v_stride, d, x);
#pragma unroll
        for (int j = 0; j < kGroup; ++j) sum[j] += p[j * kSplitStep + r] * x[0];
      }
#pragma unroll
      for (int j = 0; j < kGroup; ++j) acc[j * shape.n_columns + column] = sum[j];
    }
    __syncthreads();
  }
  for (int i = threadIdx.x; i < w.n_queries * a.value_dim; i += kPlainThreads) {
    const int j = i / a.value_dim, d = i % a.value_dim;
    float value = 0.0f;
    for (int slice = 0; slice < shape.n_slices; ++slice) {
      value += acc[j * shape.n_columns + slice * a.value_dim + d];
    }
    store_result(a, w.head + j, d, value, maxima[j], sums[j]);
  }
}

}  // namespace snapkv::cuda::decode
