// SPDX-License-Identifier: MIT
// Norm, rotation, activation and bias, row by row.
#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/launch.cuh"

namespace snapkv::cuda {
namespace {

// ---------------------------------------------------------------- rms_norm

constexpr int kNormThreads = 256;

// One block per row.
template <typename Out>
__global__ void rms_norm_kernel(const float* x, const float* weight, float eps, int64_t d,
                                Out* out) {
  __shared__ float sums[kNormThreads / kWarpSize];
  const float* row = x + blockIdx.x * d;
  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < d; i += kNormThreads) sum += row[i] * row[i];
  sum = warp_sum(sum);
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  sum = warp_sum(lane < kNormThreads / kWarpSize ? sums[lane] : 0.0f);
  const float factor = 1.0f / sqrtf(sum / static_cast<float>(d) + eps);
  for (int64_t i = threadIdx.x; i < d; i += kNormThreads) {
    out[blockIdx.x * d + i] = from_float<Out>(row[i] * factor * weight[i]);
  }
}

// ---------------------------------------------------------------- rope

constexpr int kRopeThreads = 128;

// One block per token: its angles once, in f64, then all heads.
__global__ void rope_kernel(float* x, const int32_t* pos, const double* inv_freq, int n_pairs,
                            int n_head, int head_dim, bool neox) {
  float* sines = reinterpret_cast<float*>(dynamic_shared());
  float* cosines = sines + n_pairs;
  for (int i = threadIdx.x; i < n_pairs; i += kRopeThreads) {
    const double angle = static_cast<double>(pos[blockIdx.x]) * inv_freq[i];
    sines[i] = static_cast<float>(sin(angle));
    cosines[i] = static_cast<float>(cos(angle));
  }
  __syncthreads();
  float* token = x + static_cast<int64_t>(blockIdx.x) * n_head * head_dim;
  for (int k = threadIdx.x; k < n_head * n_pairs; k += kRopeThreads) {
    const int i = k % n_pairs;
    float* head = token + k / n_pairs * head_dim;
    float& a = head[neox ? i : 2 * i];
    float& b = head[neox ? i + n_pairs : 2 * i + 1];
    const float a0 = a, b0 = b;
    a = a0 * cosines[i] - b0 * sines[i];
    b = a0 * sines[i] + b0 * cosines[i];
  }
}

// ---------------------------------------------------------------- element by element

constexpr int kElementThreads = 256;

Grid element_grid(int64_t n) {
  const int64_t blocks = div_up(n, kElementThreads);
  return {dim3(static_cast<unsigned>(std::min<int64_t>(blocks, 65536))), dim3(kElementThreads)};
}

template <typename In, typename Out>
__global__ void swiglu_kernel(const In* gate, const In* up, int64_t n, Out* out) {
  for (int64_t i = blockIdx.x * static_cast<int64_t>(kElementThreads) + threadIdx.x; i < n;
       i += gridDim.x * static_cast<int64_t>(kElementThreads)) {
    const float g = to_float(gate[i]);
    out[i] = from_float<Out>(g / (1.0f + expf(-g)) * to_float(up[i]));
  }
}

template <typename T>
__global__ void add_bias_kernel(T* x, const float* bias, int64_t n, int64_t n_cols) {
  for (int64_t i = blockIdx.x * static_cast<int64_t>(kElementThreads) + threadIdx.x; i < n;
       i += gridDim.x * static_cast<int64_t>(kElementThreads)) {
    x[i] = from_float<T>(to_float(x[i]) + bias[i % n_cols]);
  }
}

template <typename In, typename Out>
void run_swiglu(Context& ctx, const Tensor& gate, const Tensor& up, const Tensor& out) {
  const int64_t n = gate.numel();
  launch(ctx, element_grid(n), swiglu_kernel<In, Out>, static_cast<const In*>(gate.data),
         static_cast<const In*>(up.data), n, static_cast<Out*>(out.data));
}

}  // namespace

void rms_norm(Context& ctx, const Tensor& x, const Tensor& weight, float eps, const Tensor& out) {
  const Grid grid{dim3(static_cast<unsigned>(x.shape[0])), dim3(kNormThreads)};
  const auto* in = static_cast<const float*>(x.data);
  const auto* w = static_cast<const float*>(weight.data);
  if (out.dtype == DType::bf16) {
    launch(ctx, grid, rms_norm_kernel<__nv_bfloat16>, in, w, eps, x.shape[1],
           static_cast<__nv_bfloat16*>(out.data));
  } else {
    launch(ctx, grid, rms_norm_kernel<float>, in, w, eps, x.shape[1],
           static_cast<float*>(out.data));
  }
}

void rope(Context& ctx, const Tensor& x, std::span<const int32_t> pos,
          const RopeFrequencies& frequencies) {
  const auto n_pairs = static_cast<int>(frequencies.inv_freq.size());
  const Grid grid{dim3(static_cast<unsigned>(x.shape[0])), dim3(kRopeThreads),
                  2 * frequencies.inv_freq.size() * sizeof(float)};
  launch(ctx, grid, rope_kernel, static_cast<float*>(x.data), ctx.put(pos),
         ctx.put(frequencies.inv_freq), n_pairs, static_cast<int>(x.shape[1]),
         static_cast<int>(x.shape[2]), frequencies.layout == RopeLayout::neox);
}

void swiglu(Context& ctx, const Tensor& gate, const Tensor& up, const Tensor& out) {
  using bf16 = __nv_bfloat16;
  if (gate.dtype == DType::f32) {
    out.dtype == DType::f32 ? run_swiglu<float, float>(ctx, gate, up, out)
                            : run_swiglu<float, bf16>(ctx, gate, up, out);
  } else {
    out.dtype == DType::f32 ? run_swiglu<bf16, float>(ctx, gate, up, out)
                            : run_swiglu<bf16, bf16>(ctx, gate, up, out);
  }
}

void add_bias(Context& ctx, const Tensor& x, const Tensor& bias) {
  const int64_t n = x.numel();
  const auto* b = static_cast<const float*>(bias.data);
  if (x.dtype == DType::bf16) {
    launch(ctx, element_grid(n), add_bias_kernel<__nv_bfloat16>,
           static_cast<__nv_bfloat16*>(x.data), b, n, x.shape[1]);
  } else {
    launch(ctx, element_grid(n), add_bias_kernel<float>, static_cast<float*>(x.data), b, n,
           x.shape[1]);
  }
}

}  // namespace snapkv::cuda
