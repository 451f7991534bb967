// SPDX-License-Identifier: MIT
// Causal attention in f32 arithmetic, for rows of any type and any head_dim.
#pragma once

#include "backend/cuda/prefill_arguments.cuh"

namespace snapkv::cuda {

constexpr int kPlainRows = 16, kPlainKeys = 32, kPlainThreads = 128;
constexpr int kRowThreads = kPlainThreads / kPlainRows;  // that share a row's scores
constexpr int kThreadKeys = kPlainKeys / kRowThreads;

/// The distance of rows in shared memory: whole float4, with adjacent rows in different banks.
__host__ __device__ constexpr int plain_pitch(int head_dim) { return (head_dim + 3) / 4 * 4 + 4; }
/// `dim`: the larger of head_dim and value_dim.
__host__ __device__ constexpr int plain_shared_floats(int dim) {
  return (2 * kPlainRows + kPlainKeys) * plain_pitch(dim) + kPlainKeys * kPlainRows +
         2 * kPlainRows;
}

/// Rows of `tile` are `pitch` apart.
template <typename T>
__device__ void load_plain(float* tile, int pitch, const HeadView<T>& head, int first) {
  for (int at = threadIdx.x; at < kPlainKeys * pitch; at += kPlainThreads) {
    const int row = first + at / pitch, col = at % pitch;
    const bool exists = row < head.n_rows && col < head.head_dim;
    tile[at] = exists ? to_float(head.data[row * head.stride + col]) : 0.0f;
  }
}

// Scores: a thread has one row and every 8th key. Values: a thread has one column of all rows.
template <typename T>
__global__ void __launch_bounds__(kPlainThreads) prefill_plain_kernel(const PrefillArguments a) {
  const int pitch = plain_pitch(max(a.head_dim, a.value_dim));
  float* const q = reinterpret_cast<float*>(dynamic_shared());  // [kPlainRows, pitch]
  float* const o = q + kPlainRows * pitch;                      // [kPlainRows, pitch]
  float* const kv = o + kPlainRows * pitch;                     // [kPlainKeys, pitch]
  float* const p = kv + kPlainKeys * pitch;                     // [kPlainKeys, kPlainRows]
  float* const factors = p + kPlainKeys * kPlainRows;           // [kPlainRows]
  float* const sums = factors + kPlainRows;                     // [kPlainRows]
  const PrefillWork work = work_of_block(a);
  const HeadView<T> keys = a.keys<T>(work.g), values = a.values<T>(work.g);
  const int n_past = a.n_past[work.g], first_row = work.tile * kPlainRows;
  for (int at = threadIdx.x; at < kPlainRows * pitch; at += kPlainThreads) {
    const int row = first_row + at / pitch, col = at % pitch;
    const bool exists = row < a.n_rows() && col < a.head_dim;
    q[at] = exists ? a.q[a.vector_of(work.g, row) * a.head_dim + col] : 0.0f;
    o[at] = 0.0f;
  }
  const int row = threadIdx.x / kRowThreads, part = threadIdx.x % kRowThreads;
  const int last_seen = n_past + (first_row + row) / a.n_group;
  const int first_key = a.variant.first_seen(last_seen);
  const int begin = a.variant.first_seen(n_past + first_row / a.n_group) / kPlainKeys * kPlainKeys;
  const int n_seen = n_past + (min(first_row + kPlainRows, a.n_rows()) - 1) / a.n_group + 1;
  float max = -INFINITY, sum = 0.0f;  // of the row, equal in all its threads
  for (int first = begin; first < n_seen; first += kPlainKeys) {
    __syncthreads();
    load_plain(kv, pitch, keys, first);
    __syncthreads();
    float s[kThreadKeys] = {};
    for (int d = 0; d < pitch - 4; d += 4) {
      const float4 x = *reinterpret_cast<const float4*>(q + row * pitch + d);
#pragma unroll
      for (int i = 0; i < kThreadKeys; ++i) {
        const float4 y =
            *reinterpret_cast<const float4*>(kv + (part + i * kRowThreads) * pitch + d);
        s[i] += x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
      }
    }
    float m = max;
#pragma unroll
    for (int i = 0; i < kThreadKeys; ++i) {
      const int key = first + part + i * kRowThreads;
      const bool seen = first_key <= key && key <= last_seen;
      s[i] = seen ? a.variant.capped(s[i] * a.scale_log2) : -INFINITY;
      m = fmaxf(m, s[i]);
    }
    for (int bits = kRowThreads / 2; bits > 0; bits /= 2) {
      m = fmaxf(m, __shfl_xor_sync(kAllLanes, m, bits));
    }
    const float base = m == -INFINITY ? 0.0f : m;  // if the row has seen nothing yet
    const float factor = exp2f(max - base);
    float added = 0.0f;
#pragma unroll
    for (int i = 0; i < kThreadKeys; ++i) {
      const float probability = exp2f(s[i] - base);
      p[(part + i * kRowThreads) * kPlainRows + row] = probability;
      added += probability;
    }
    for (int bits = kRowThreads / 2; bits > 0; bits /= 2) {
      added += __shfl_xor_sync(kAllLanes, added, bits);
    }
    sum = sum * factor + added;
    max = m;
    if (part == 0) factors[row] = factor;
    __syncthreads();
    load_plain(kv, pitch, values, first);
    __syncthreads();
    for (int d = threadIdx.x; d < a.value_dim; d += kPlainThreads) {
      float acc[kPlainRows];
#pragma unroll
      for (int r = 0; r < kPlainRows; ++r) acc[r] = o[r * pitch + d] * factors[r];
#pragma unroll 4
      for (int j = 0; j < kPlainKeys; ++j) {
        const float y = kv[j * pitch + d];
#pragma unroll
        for (int r = 0; r < kPlainRows; ++r) acc[r] += p[j * kPlainRows + r] * y;
      }
#pragma unroll
      for (int r = 0; r < kPlainRows; ++r) o[r * pitch + d] = acc[r];
    }
  }
  const float to_sink = with_sink(a.variant.sink(a.head_of(work.g, first_row + row)), max, sum);
  __syncthreads();  // the last tile's factors have been read
  if (part == 0) {
    sums[row] = sum;
    factors[row] = to_sink;
  }
  __syncthreads();
  for (int at = threadIdx.x; at < kPlainRows * a.value_dim; at += kPlainThreads) {
    const int r = at / a.value_dim, d = at % a.value_dim;
    if (first_row + r >= a.n_rows()) continue;
    a.put(a.vector_of(work.g, first_row + r) * a.value_dim + d,
          o[r * pitch + d] * factors[r] / sums[r]);
  }
}

}  // namespace snapkv::cuda
