// SPDX-License-Identifier: MIT
// Op delta_rule: linear attention with a state that forgets (backend/ops.def). One block computes a
// head of a sequence, token by token, each thread some columns of the head's state. The state passes
// through the caches three times for each token. Floor: the state read and written once for each
// sequence, and 3 d_k d_v multiplications and additions for each token and head. Where each row of
// the state has a decay of its own, the block computes these once for each token.
#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/ptx.cuh"
#include "backend/cuda/sequences.h"
#include "backend/cuda/weight_store.h"

namespace snapkv::cuda {
namespace {

constexpr int kDeltaThreads = 128;

/// Sizes and addresses of a call.
struct DeltaArguments {
  const float *qkv, *decay, *beta, *rate, *decay_bias;
  float* out;
  int64_t n_head, n_head_k, d_k, d_v, n_qkv;
  bool keys_take_turns;
  float log_floor, eps;
};

/// to = x / sqrt(|x|^2 + eps) * scale, by all threads of the block.
__device__ __forceinline__ void normalize_into(const float* x, int64_t n, float eps, float scale,
                                               float* to, float* sums) {
  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < n; i += kDeltaThreads) sum += x[i] * x[i];
  sum = warp_sum(sum);
  __syncthreads();  // earlier sums, and what is in `to`, have been read
  if (threadIdx.x % kWarpSize == 0) sums[threadIdx.x / kWarpSize] = sum;
  __syncthreads();
  float all = 0.0f;
  for (int i = 0; i < kDeltaThreads / kWarpSize; ++i) all += sums[i];
  const float factor = scale / sqrtf(all + eps);
  for (int64_t i = threadIdx.x; i < n; i += kDeltaThreads) to[i] = x[i] * factor;
}

/// DeltaRule's decay: of x = decay + bias.
__device__ __forceinline__ float decay_of(float rate, float log_floor, float x) {
  if (log_floor < 0.0f) return expf(log_floor / (1.0f + expf(-rate * x)));
  const float softplus = x > 0.0f ? x + log1pf(expf(-x)) : log1pf(expf(x));
  return expf(rate * softplus);
}

// blockIdx.x: the head, blockIdx.y: the sequence. Shared memory: the token's query and key, and
// with kByChannel the decays of the state's rows.
template <bool kByChannel>
__global__ void __launch_bounds__(kDeltaThreads)
    delta_rule_kernel(DeltaArguments a, const SequenceRows* sequences) {
  __shared__ float sums[kDeltaThreads / kWarpSize];
  auto* const q = reinterpret_cast<float*>(dynamic_shared());
  float* const k = q + a.d_k;
  float* const decays = k + a.d_k;
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  const SequenceRows rows = sequences[blockIdx.y];
  const int64_t head = blockIdx.x, to_state = head * a.d_k * a.d_v;
  const int64_t key_head =
      a.keys_take_turns ? head % a.n_head_k : head / (a.n_head / a.n_head_k);
  const float* from = static_cast<const float*>(rows.from) + to_state;
  auto* const to = static_cast<float*>(rows.to) + to_state;
  const float scale = 1.0f / sqrtf(static_cast<float>(a.d_k));
  for (int64_t t = rows.begin; t < rows.end; ++t) {
    const float* const row = a.qkv + t * a.n_qkv;
    const float* const v = row + 2 * a.n_head_k * a.d_k + head * a.d_v;
    normalize_into(row + key_head * a.d_k, a.d_k, a.eps, scale, q, sums);
    normalize_into(row + (a.n_head_k + key_head) * a.d_k, a.d_k, a.eps, 1.0f, k, sums);
    if constexpr (kByChannel) {  // the decays of the token before have been read
      const float* const x = a.decay + (t * a.n_head + head) * a.d_k;
      for (int64_t i = threadIdx.x; i < a.d_k; i += kDeltaThreads) {
        decays[i] = decay_of(a.rate[head], a.log_floor, x[i] + a.decay_bias[head * a.d_k + i]);
      }
    }
    __syncthreads();
    float decay = 1.0f;
    if constexpr (!kByChannel) {
      decay = decay_of(a.rate[head], a.log_floor, a.decay[t * a.n_head + head] + a.decay_bias[head]);
    }
    const float beta = 1.0f / (1.0f + expf(-a.beta[t * a.n_head + head]));
    for (int64_t j = threadIdx.x; j < a.d_v; j += kDeltaThreads) {
      float held = 0.0f, read = 0.0f;
      for (int64_t i = 0; i < a.d_k; ++i) {
        if constexpr (kByChannel) {
          held += k[i] * (decays[i] * from[i * a.d_v + j]);
        } else {
          held += k[i] * from[i * a.d_v + j];
        }
      }
      const float update = beta * (v[j] - (kByChannel ? held : decay * held));
      for (int64_t i = 0; i < a.d_k; ++i) {
        const float s = (kByChannel ? decays[i] : decay) * from[i * a.d_v + j] + k[i] * update;
        to[i * a.d_v + j] = s;
        read += q[i] * s;
      }
      a.out[(t * a.n_head + head) * a.d_v + j] = read;
    }
    from = to;
  }
}

}  // namespace

void delta_rule(Context& ctx, const DeltaRule& r) {
  const auto weight = [&](const Tensor& t) {
    return static_cast<const float*>(ctx.weights().on_device(t).data);
  };
  const DeltaArguments arguments = {.qkv = static_cast<const float*>(r.qkv.data),
                                    .decay = static_cast<const float*>(r.decay.data),
                                    .beta = static_cast<const float*>(r.beta.data),
                                    .rate = weight(r.rate),
                                    .decay_bias = weight(r.decay_bias),
                                    .out = static_cast<float*>(r.out.data),
                                    .n_head = r.n_head(),
                                    .n_head_k = r.n_head_k,
                                    .d_k = r.d_k,
                                    .d_v = r.d_v(),
                                    .n_qkv = r.n_qkv(),
                                    .keys_take_turns = r.keys_take_turns,
                                    .log_floor = r.log_floor,
                                    .eps = r.eps};
  const SequenceRows* const all = ctx.put(r.sequences);
  for (size_t begin = 0; begin < r.sequences.size();) {
    const size_t n = count_independent(r.sequences.subspan(begin));
    const bool by_channel = r.n_decay() > 1;
    const Grid grid{dim3(r.n_head(), n), dim3(kDeltaThreads),
                    (by_channel ? 3 : 2) * r.d_k * sizeof(float)};
    if (by_channel) {
      start_early(ctx, grid, delta_rule_kernel<true>, arguments, all + begin);
    } else {
      start_early(ctx, grid, delta_rule_kernel<false>, arguments, all + begin);
    }
    begin += n;
  }
}

}  // namespace snapkv::cuda
