// SPDX-License-Identifier: MIT
// Op short_conv: a convolution along each sequence (backend/ops.def). One thread computes a
// channel of a row, with its k inputs from the caches. Floor: the rows read and written once.
#include <algorithm>

#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/ptx.cuh"
#include "backend/cuda/sequences.h"
#include "backend/cuda/weight_store.h"

namespace snapkv::cuda {
namespace {

constexpr int kConvThreads = 256;

/// Input y of row t, counted from the sequence's first of these rows: before it, of the state.
template <bool gates>
__device__ __forceinline__ float conv_input(const float* in, const float* from, int64_t t,
                                            int64_t i, int64_t d, int64_t n_before) {
  if (t < 0) return from[(t + n_before) * d + i];
  if constexpr (!gates) return in[t * d + i];
  return in[3 * t * d + i] * in[(3 * t + 2) * d + i];
}

// blockIdx.y: the sequence; its rows and channels are shared out to the x blocks' threads.
template <bool gates, typename Out>
__global__ void short_conv_kernel(const float* in, const float* weight, const float* bias,
                                  const SequenceRows* sequences, int64_t d, int64_t kernel_size,
                                  Out* out) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  const SequenceRows rows = sequences[blockIdx.y];
  const int64_t n = rows.end - rows.begin, n_before = kernel_size - 1;
  const auto* from = static_cast<const float*>(rows.from);
  auto* to = static_cast<float*>(rows.to);
  const float* first = in + (gates ? 3 : 1) * rows.begin * d;
  const int64_t start = blockIdx.x * int64_t{kConvThreads} + threadIdx.x;
  const int64_t step = int64_t{gridDim.x} * kConvThreads;
  for (int64_t at = start; at < n * d; at += step) {
    const int64_t t = at / d, i = at % d;
    float sum = bias != nullptr ? bias[i] : 0.0f;
    for (int64_t j = 0; j < kernel_size; ++j) {
      sum +=
          weight[i * kernel_size + j] * conv_input<gates>(first, from, t - n_before + j, i, d, n_before);
    }
    const float gate = gates ? first[(3 * t + 1) * d + i] : 1.0f / (1.0f + expf(-sum));
    out[(rows.begin + t) * d + i] = from_float<Out>(gate * sum);
  }
  for (int64_t at = start; at < n_before * d; at += step) {
    to[at] = conv_input<gates>(first, from, n - n_before + at / d, at % d, d, n_before);
  }
}

template <bool gates, typename Out>
void run_short_conv(Context& ctx, const ShortConv& c) {
  const int64_t d = c.weight.shape[0], kernel_size = c.weight.shape[1];
  const auto* weight = static_cast<const float*>(ctx.weights().on_device(c.weight).data);
  const float* const bias =
      c.bias ? static_cast<const float*>(ctx.weights().on_device(c.bias).data) : nullptr;
  const SequenceRows* const all = ctx.put(c.sequences);
  for (size_t begin = 0; begin < c.sequences.size();) {
    const size_t n = count_independent(c.sequences.subspan(begin));
    int64_t most = kernel_size - 1;
    for (const SequenceRows& rows : c.sequences.subspan(begin, n)) {
      most = std::max(most, rows.end - rows.begin);
    }
    const Grid grid{dim3(std::min<int64_t>(div_up(most * d, kConvThreads), 65536), n),
                    dim3(kConvThreads)};
    start_early(ctx, grid, short_conv_kernel<gates, Out>, static_cast<const float*>(c.in.data), weight,
                bias, all + begin, d, kernel_size, static_cast<Out*>(c.out.data));
    begin += n;
  }
}

}  // namespace

void short_conv(Context& ctx, const ShortConv& c) {
  const bool bf16 = c.out.dtype == DType::bf16;
  if (c.in.shape[1] == 3) {
    bf16 ? run_short_conv<true, __nv_bfloat16>(ctx, c) : run_short_conv<true, float>(ctx, c);
  } else {
    bf16 ? run_short_conv<false, __nv_bfloat16>(ctx, c) : run_short_conv<false, float>(ctx, c);
  }
}

}  // namespace snapkv::cuda
