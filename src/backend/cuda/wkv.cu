// SPDX-License-Identifier: MIT
// Op wkv: the states of RWKV 6 and 7 (backend/ops.def). One block computes a head of a sequence,
// token by token, each thread some columns of the head's state, which passes through the caches
// three times for each token (twice without removals). Floor: the state read and written once for
// each sequence, and 5 d^2 multiplications and additions for each token and head.
#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/ptx.cuh"
#include "backend/cuda/sequences.h"
#include "backend/cuda/weight_store.h"

namespace snapkv::cuda {
namespace {

constexpr int kWkvThreads = 64;

/// Sizes and addresses of a call.
struct WkvArguments {
  const float *r, *decay, *k, *v, *rate, *bonus, *removal, *replacement;
  float *out, *shares;
  int64_t n_head, n_head_kv, d;
};

/// The sum over all threads of the block; every thread receives it.
__device__ __forceinline__ float wkv_block_sum(float v, float* sums) {
  v = warp_sum(v);
  __syncthreads();  // earlier sums have been read
  if (threadIdx.x % kWarpSize == 0) sums[threadIdx.x / kWarpSize] = v;
  __syncthreads();
  float all = 0.0f;
  for (int i = 0; i < kWkvThreads / kWarpSize; ++i) all += sums[i];
  return all;
}

__device__ __forceinline__ float sigmoid_of(float x) { return 1.0f / (1.0f + expf(-x)); }

// blockIdx.x: the head, blockIdx.y: the sequence. Shared memory: the token's r, w, k, z and m.
template <WkvRule rule>
__global__ void __launch_bounds__(kWkvThreads)
    wkv_kernel(WkvArguments a, const SequenceRows* sequences) {
  __shared__ float sums[kWkvThreads / kWarpSize];
  auto* const r = reinterpret_cast<float*>(dynamic_shared());
  float *const w = r + a.d, *const k = w + a.d, *const z = k + a.d, *const m = z + a.d;
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  const SequenceRows rows = sequences[blockIdx.y];
  const int64_t head = blockIdx.x, d = a.d, at = head * d;
  const int64_t key_at = head / (a.n_head / a.n_head_kv) * d, n_kv = a.n_head_kv * d;
  const float* from = static_cast<const float*>(rows.from) + head * d * d;
  auto* const to = static_cast<float*>(rows.to) + head * d * d;
  const float scale = rule == WkvRule::gated ? 1.0f / sqrtf(static_cast<float>(d)) : 1.0f;
  for (int64_t t = rows.begin; t < rows.end; ++t) {
    const int64_t row = t * a.n_head * d + at;
    __syncthreads();  // the token before has been computed
    float squares = 0.0f, share = 0.0f;
    for (int64_t i = threadIdx.x; i < d; i += kWkvThreads) {
      const float x = a.decay[row + i];
      const float log = rule == WkvRule::rwkv7 ? 0.60653066f * sigmoid_of(x) : expf(x);
      r[i] = a.r[row + i];
      w[i] = expf(-log);
      k[i] = a.k[t * n_kv + key_at + i];
      if constexpr (rule == WkvRule::gated) k[i] *= 1.0f - w[i];
      if constexpr (rule == WkvRule::rwkv7) {
        z[i] = a.removal[at + i] * k[i];
        squares += z[i] * z[i];
        const float rate = sigmoid_of(a.rate[row + i]);
        m[i] = rate;
        k[i] *= 1.0f + (rate - 1.0f) * a.replacement[at + i];
      }
      if constexpr (rule != WkvRule::gated) share += a.bonus[at + i] * k[i] * r[i];
    }
    if constexpr (rule == WkvRule::rwkv7) {
      const float length = sqrtf(wkv_block_sum(squares, sums));
      const float inverse = 1.0f / (length < kLeastKeyLength ? kLeastKeyLength : length);
      for (int64_t i = threadIdx.x; i < d; i += kWkvThreads) {
        z[i] *= inverse;
        m[i] *= -z[i];
      }
    }
    if constexpr (rule != WkvRule::gated) share = wkv_block_sum(share, sums);
    if (rule == WkvRule::rwkv7 && threadIdx.x == 0) a.shares[t * a.n_head + head] = share;
    __syncthreads();
    for (int64_t j = threadIdx.x; j < d; j += kWkvThreads) {
      const float v = a.v[t * n_kv + key_at + j];
      float held = 0.0f, read = rule == WkvRule::rwkv6 ? share * v : 0.0f;
      if constexpr (rule == WkvRule::rwkv7) {
        for (int64_t i = 0; i < d; ++i) held += z[i] * from[i * d + j];
      }
      for (int64_t i = 0; i < d; ++i) {
        const float before = from[i * d + j];
        float s = w[i] * before + k[i] * v;
        if constexpr (rule == WkvRule::rwkv7) s += m[i] * held;
        to[i * d + j] = s;
        read += r[i] * (rule == WkvRule::rwkv6 ? before : s);
      }
      a.out[row + j] = scale * read;
    }
    from = to;
  }
}

}  // namespace

void wkv(Context& ctx, const Wkv& w) {
  const auto values = [](const Tensor& t) { return static_cast<const float*>(t.data); };
  const auto weight = [&](const Tensor& t) -> const float* {
    return t ? values(ctx.weights().on_device(t)) : nullptr;
  };
  const WkvArguments arguments = {.r = values(w.r),
                                  .decay = values(w.decay),
                                  .k = values(w.k),
                                  .v = values(w.v),
                                  .rate = values(w.rate),
                                  .bonus = weight(w.bonus),
                                  .removal = weight(w.removal),
                                  .replacement = weight(w.replacement),
                                  .out = static_cast<float*>(w.out.data),
                                  .shares = static_cast<float*>(w.shares.data),
                                  .n_head = w.n_head(),
                                  .n_head_kv = w.k.shape[1] / w.d(),
                                  .d = w.d()};
  const SequenceRows* const all = ctx.put(w.sequences);
  for (size_t begin = 0; begin < w.sequences.size();) {
    const size_t n = count_independent(w.sequences.subspan(begin));
    const Grid grid{dim3(w.n_head(), n), dim3(kWkvThreads), 5 * w.d() * sizeof(float)};
    switch (w.rule) {
      case WkvRule::rwkv6:
        start_early(ctx, grid, wkv_kernel<WkvRule::rwkv6>, arguments, all + begin);
        break;
      case WkvRule::gated:
        start_early(ctx, grid, wkv_kernel<WkvRule::gated>, arguments, all + begin);
        break;
      case WkvRule::rwkv7:
        start_early(ctx, grid, wkv_kernel<WkvRule::rwkv7>, arguments, all + begin);
        break;
    }
    begin += n;
  }
}

}  // namespace snapkv::cuda
