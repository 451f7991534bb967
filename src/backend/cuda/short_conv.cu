// SPDX-License-Identifier: MIT
// Op short_conv: a gated convolution along each sequence (backend/ops.def). One thread computes a
// channel of a row, with its k inputs from the caches. Floor: the rows read and written once.
#include <algorithm>
#include <span>

#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/ptx.cuh"
#include "backend/cuda/weight_store.h"

namespace snapkv::cuda {
namespace {

constexpr int kConvThreads = 256;

/// Input y of row t, counted from the sequence's first of these rows: before it, of the state.
__device__ __forceinline__ float conv_input(const float* in, const float* from, int64_t t,
                                            int64_t i, int64_t d, int64_t n_before) {
  if (t < 0) return from[(t + n_before) * d + i];
  return in[3 * t * d + i] * in[(3 * t + 2) * d + i];
}

// blockIdx.y: the sequence; its rows and channels are shared out to the x blocks' threads.
template <typename Out>
__global__ void short_conv_kernel(const float* in, const float* weight,
                                  const SequenceRows* sequences, int64_t d, int64_t kernel_size,
                                  Out* out) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  const SequenceRows rows = sequences[blockIdx.y];
  const int64_t n = rows.end - rows.begin, n_before = kernel_size - 1;
  const auto* from = static_cast<const float*>(rows.from);
  auto* to = static_cast<float*>(rows.to);
  const float* first = in + 3 * rows.begin * d;
  const int64_t start = blockIdx.x * int64_t{kConvThreads} + threadIdx.x;
  const int64_t step = int64_t{gridDim.x} * kConvThreads;
  for (int64_t at = start; at < n * d; at += step) {
    const int64_t t = at / d, i = at % d;
    float sum = 0.0f;
    for (int64_t j = 0; j < kernel_size; ++j) {
      sum +=
          weight[i * kernel_size + j] * conv_input(first, from, t - n_before + j, i, d, n_before);
    }
    out[(rows.begin + t) * d + i] = from_float<Out>(first[(3 * t + 1) * d + i] * sum);
  }
  for (int64_t at = start; at < n_before * d; at += step) {
    to[at] = conv_input(first, from, n - n_before + at / d, at % d, d, n_before);
  }
}

/// How many of the first entries can run at the same time: up to one that goes on from the state of
/// the one before it.
size_t count_independent(std::span<const SequenceRows> sequences) {
  size_t n = 1;
  while (n < sequences.size() && sequences[n].from != sequences[n - 1].to) ++n;
  return n;
}

template <typename Out>
void run_short_conv(Context& ctx, const ShortConv& c) {
  const int64_t d = c.weight.shape[0], kernel_size = c.weight.shape[1];
  const auto* weight = static_cast<const float*>(ctx.weights().on_device(c.weight).data);
  const SequenceRows* const all = ctx.put(c.sequences);
  for (size_t begin = 0; begin < c.sequences.size();) {
    const size_t n = count_independent(c.sequences.subspan(begin));
    int64_t most = kernel_size - 1;
    for (const SequenceRows& rows : c.sequences.subspan(begin, n)) {
      most = std::max(most, rows.end - rows.begin);
    }
    const Grid grid{dim3(std::min<int64_t>(div_up(most * d, kConvThreads), 65536), n),
                    dim3(kConvThreads)};
    start_early(ctx, grid, short_conv_kernel<Out>, static_cast<const float*>(c.in.data), weight,
                all + begin, d, kernel_size, static_cast<Out*>(c.out.data));
    begin += n;
  }
}

}  // namespace

void short_conv(Context& ctx, const ShortConv& c) {
  c.out.dtype == DType::bf16 ? run_short_conv<__nv_bfloat16>(ctx, c)
                             : run_short_conv<float>(ctx, c);
}

}  // namespace snapkv::cuda
