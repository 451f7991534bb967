// SPDX-License-Identifier: MIT
// Ops of models with several residual streams. The floor is the time to read and write the values;
// with one token they are launches of a few microseconds each.
#include <algorithm>

#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/ptx.cuh"
#include "backend/cuda/weight_store.h"

namespace snapkv::cuda {
namespace {

constexpr int kStreamThreads = 256;

/// The sum over all threads of a block of kStreamThreads; every thread receives it.
__device__ __forceinline__ float sum_of_block(float v, float* sums) {
  v = warp_sum(v);
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  __syncthreads();  // earlier sums have been read
  if (lane == 0) sums[warp] = v;
  __syncthreads();
  return warp_sum(lane < kStreamThreads / kWarpSize ? sums[lane] : 0.0f);
}

// One block per row. The deviation is computed from the differences from the mean.
__global__ void __launch_bounds__(kStreamThreads)
    keep_peaks_kernel(float* x, float deviations, int64_t d) {
  __shared__ float sums[kStreamThreads / kWarpSize];
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  float* row = x + blockIdx.x * d;
  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < d; i += kStreamThreads) sum += row[i];
  const float mean = sum_of_block(sum, sums) / static_cast<float>(d);
  float squares = 0.0f;
  for (int64_t i = threadIdx.x; i < d; i += kStreamThreads) {
    squares += (row[i] - mean) * (row[i] - mean);
  }
  const float deviation = sqrtf(sum_of_block(squares, sums) / static_cast<float>(d));
  const float cut = mean + deviations * deviation;
  for (int64_t i = threadIdx.x; i < d; i += kStreamThreads) {
    const float above = row[i] - cut;
    row[i] = above < 0.0f ? 0.0f : above;  // NaN stays
  }
}

// One block per row.
__global__ void __launch_bounds__(kStreamThreads)
    match_norms_kernel(float* x, const float* like, int64_t d) {
  __shared__ float sums[kStreamThreads / kWarpSize];
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  float* row = x + blockIdx.x * d;
  const float* other = like + blockIdx.x * d;
  float own = 0.0f, wanted = 0.0f;
  for (int64_t i = threadIdx.x; i < d; i += kStreamThreads) {
    own += row[i] * row[i];
    wanted += other[i] * other[i];
  }
  own = sum_of_block(own, sums) / static_cast<float>(d);
  wanted = sum_of_block(wanted, sums) / static_cast<float>(d);
  const float factor = sqrtf(wanted / (own < kLeastMeanSquare ? kLeastMeanSquare : own));
  for (int64_t i = threadIdx.x; i < d; i += kStreamThreads) row[i] *= factor;
}

Grid stream_grid(int64_t n) {
  return {dim3(std::min<int64_t>(div_up(n, kStreamThreads), 65536)), dim3(kStreamThreads)};
}

// Value i of out, which has n, is of row i / d.
__global__ void take_stream_kernel(const float* x, int64_t stream, int64_t k, const float* factors,
                                   int64_t d, int64_t n, float* out) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  for (int64_t i = int64_t{blockIdx.x} * kStreamThreads + threadIdx.x; i < n;
       i += int64_t{gridDim.x} * kStreamThreads) {
    const float value = x[(i / d * k + stream) * d + i % d];
    out[i] = factors != nullptr ? value * factors[i % d] : value;
  }
}

// A thread has one column of one row, n of them in all.
__global__ void mix_streams_kernel(float* x, const float* coefficients, int64_t k, int64_t d,
                                   int64_t n) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  for (int64_t i = int64_t{blockIdx.x} * kStreamThreads + threadIdx.x; i < n;
       i += int64_t{gridDim.x} * kStreamThreads) {
    const int64_t t = i / d;
    float* column = x + t * k * d + i % d;
    const float* row = coefficients + t * k * k;
    float before[kMostStreams];
#pragma unroll
    for (int64_t j = 0; j < kMostStreams; ++j) before[j] = j < k ? column[j * d] : 0.0f;
#pragma unroll
    for (int64_t to = 0; to < kMostStreams; ++to) {
      if (to >= k) continue;
      float sum = before[to];
#pragma unroll
      for (int64_t j = 0; j < kMostStreams; ++j) {
        if (j < k) sum += row[to * k + j] * before[j];
      }
      column[to * d] = sum;
    }
  }
}

// A thread has one column of one row, n of them in all.
__global__ void add_to_streams_kernel(float* x, const float* y, const float* factors, int64_t first,
                                      int64_t k, int64_t d, int64_t n) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  for (int64_t i = int64_t{blockIdx.x} * kStreamThreads + threadIdx.x; i < n;
       i += int64_t{gridDim.x} * kStreamThreads) {
    const int64_t t = i / d;
    float* column = x + t * k * d + i % d;
    const float value = y[i];
    for (int64_t to = first; to < k; ++to) {
      column[to * d] += factors != nullptr ? factors[t * k + to] * value : value;
    }
  }
}

}  // namespace

void keep_peaks(Context& ctx, const Tensor& x, float deviations) {
  start_early(ctx, {dim3(x.shape[0]), dim3(kStreamThreads)}, keep_peaks_kernel,
              static_cast<float*>(x.data), deviations, x.shape[1]);
}

void take_stream(Context& ctx, const Tensor& x, int64_t stream, const Tensor& factors,
                 const Tensor& out) {
  const float* const w =
      factors ? static_cast<const float*>(ctx.weights().on_device(factors).data) : nullptr;
  start_early(ctx, stream_grid(out.numel()), take_stream_kernel, static_cast<const float*>(x.data),
              stream, x.shape[1], w, x.shape[2], out.numel(), static_cast<float*>(out.data));
}

void mix_streams(Context& ctx, const Tensor& x, const Tensor& coefficients) {
  const int64_t n = x.shape[0] * x.shape[2];
  start_early(ctx, stream_grid(n), mix_streams_kernel, static_cast<float*>(x.data),
              static_cast<const float*>(coefficients.data), x.shape[1], x.shape[2], n);
}

void add_to_streams(Context& ctx, const Tensor& x, const Tensor& y, const Tensor& factors,
                    int64_t first) {
  start_early(ctx, stream_grid(y.numel()), add_to_streams_kernel, static_cast<float*>(x.data),
              static_cast<const float*>(y.data), static_cast<const float*>(factors.data), first,
              x.shape[1], x.shape[2], y.numel());
}

void match_norms(Context& ctx, const Tensor& x, const Tensor& like) {
  start_early(ctx, {dim3(x.shape[0]), dim3(kStreamThreads)}, match_norms_kernel,
              static_cast<float*>(x.data), static_cast<const float*>(like.data), x.shape[1]);
}

}  // namespace snapkv::cuda
