// SPDX-License-Identifier: MIT
// Ops token_shift and blend (backend/ops.def). One thread computes all mixes of a channel of a row.
// Floor: the rows read and the mixes written once.
#include <algorithm>
#include <iterator>

#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/ptx.cuh"
#include "backend/cuda/sequences.h"
#include "backend/cuda/weight_store.h"

namespace snapkv::cuda {
namespace {

constexpr int kShiftThreads = 256;

/// The mixes of a call; added: null where there is none.
template <typename Out>
struct ShiftOutputs {
  Out* out[kMostMixes];
  const float* added[kMostMixes];
  int n;
};

// blockIdx.y: the sequence; its rows and channels are shared out to the x blocks' threads.
template <typename In, typename Out>
__global__ void token_shift_kernel(const In* x, const float* mix, ShiftOutputs<Out> outputs,
                                   const SequenceRows* sequences, int64_t d) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  const SequenceRows rows = sequences[blockIdx.y];
  const auto* from = static_cast<const float*>(rows.from);
  auto* to = static_cast<float*>(rows.to);
  const int64_t start = blockIdx.x * int64_t{kShiftThreads} + threadIdx.x;
  const int64_t step = int64_t{gridDim.x} * kShiftThreads;
  for (int64_t at = start + rows.begin * d; at < rows.end * d; at += step) {
    const int64_t t = at / d, c = at % d;
    const float now = to_float(x[at]);
    const float before = t == rows.begin ? from[c] : to_float(x[at - d]);
    for (int i = 0; i < outputs.n; ++i) {
      float m = mix[i * d + c];
      if (outputs.added[i] != nullptr) m += outputs.added[i][at];
      outputs.out[i][at] = from_float<Out>(now + (before - now) * m);
    }
  }
  for (int64_t c = start; c < d; c += step) to[c] = to_float(x[(rows.end - 1) * d + c]);
}

template <typename In, typename Out>
void run_token_shift(Context& ctx, const TokenShift& s) {
  const int64_t d = s.x.shape[1];
  const auto* mix = static_cast<const float*>(ctx.weights().on_device(s.mix).data);
  ShiftOutputs<Out> outputs = {};
  outputs.n = static_cast<int>(s.outs.size());
  for (int i = 0; i < outputs.n; ++i) {
    outputs.out[i] = static_cast<Out*>(s.outs[i].data);
    outputs.added[i] = s.added.empty() ? nullptr : static_cast<const float*>(s.added[i].data);
  }
  const SequenceRows* const all = ctx.put(s.sequences);
  for (size_t begin = 0; begin < s.sequences.size();) {
    const size_t n = count_independent(s.sequences.subspan(begin));
    int64_t most = 1;
    for (const SequenceRows& rows : s.sequences.subspan(begin, n)) {
      most = std::max(most, rows.end - rows.begin);
    }
    const Grid grid{dim3(std::min<int64_t>(div_up(most * d, kShiftThreads), 65536), n),
                    dim3(kShiftThreads)};
    start_early(ctx, grid, token_shift_kernel<In, Out>, static_cast<const In*>(s.x.data), mix,
                outputs, all + begin, d);
    begin += n;
  }
}

__global__ void blend_kernel(float* x, const float* y, const float* gates, int64_t n) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  for (int64_t i = int64_t{blockIdx.x} * kShiftThreads + threadIdx.x; i < n;
       i += int64_t{gridDim.x} * kShiftThreads) {
    x[i] += (y[i] - x[i]) / (1.0f + expf(-gates[i]));
  }
}

}  // namespace

void token_shift(Context& ctx, const TokenShift& s) {
  const bool to_bf16 = s.outs[0].dtype == DType::bf16;
  if (s.x.dtype == DType::bf16) {
    to_bf16 ? run_token_shift<__nv_bfloat16, __nv_bfloat16>(ctx, s)
            : run_token_shift<__nv_bfloat16, float>(ctx, s);
  } else {
    to_bf16 ? run_token_shift<float, __nv_bfloat16>(ctx, s) : run_token_shift<float, float>(ctx, s);
  }
}

void blend(Context& ctx, const Tensor& x, const Tensor& y, const Tensor& gates) {
  const int64_t n = x.numel();
  const Grid grid{dim3(std::min<int64_t>(div_up(n, kShiftThreads), 65536)), dim3(kShiftThreads)};
  start_early(ctx, grid, blend_kernel, static_cast<float*>(x.data),
              static_cast<const float*>(y.data), static_cast<const float*>(gates.data), n);
}

}  // namespace snapkv::cuda
