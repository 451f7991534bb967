// SPDX-License-Identifier: MIT
// Op channel_scan: the scan of Mamba's states (backend/ops.def). One block computes kChannelThreads
// channels of a sequence, token by token, each thread one channel, whose state passes through the
// caches twice for each token. Floor: the state read and written once for each sequence, and 2
// multiplications and additions and an exponential for each token and value of the state.
#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/ptx.cuh"
#include "backend/cuda/sequences.h"
#include "backend/cuda/weight_store.h"

namespace snapkv::cuda {
namespace {

constexpr int kChannelThreads = 64;

/// Sizes and addresses of a call.
struct ChannelScanArguments {
  const float *x, *step, *b, *c, *rate, *skip;
  float* out;
  int64_t n_channel, d_state;
};

// blockIdx.x: the channels, blockIdx.y: the sequence. Shared memory: the token's B and C.
__global__ void __launch_bounds__(kChannelThreads)
    channel_scan_kernel(ChannelScanArguments a, const SequenceRows* sequences) {
  auto* const b = reinterpret_cast<float*>(dynamic_shared());
  float* const c = b + a.d_state;
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  const SequenceRows rows = sequences[blockIdx.y];
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kChannelThreads + threadIdx.x;
  const bool exists = channel < a.n_channel;
  const float* from = static_cast<const float*>(rows.from) + channel;
  auto* const to = static_cast<float*>(rows.to) + channel;
  const float skip = exists ? a.skip[channel] : 0.0f;
  for (int64_t t = rows.begin; t < rows.end; ++t) {
    __syncthreads();  // the token before has been computed
    for (int64_t i = threadIdx.x; i < a.d_state; i += kChannelThreads) {
      b[i] = a.b[t * a.d_state + i];
      c[i] = a.c[t * a.d_state + i];
    }
    __syncthreads();
    if (!exists) continue;
    const float wanted = a.step[t * a.n_channel + channel], x = a.x[t * a.n_channel + channel];
    const float step = wanted > 0.0f ? wanted + log1pf(expf(-wanted)) : log1pf(expf(wanted));
    const float update = step * x;
    float read = skip * x;
    for (int64_t i = 0; i < a.d_state; ++i) {
      const int64_t at = i * a.n_channel;
      const float s = expf(a.rate[at + channel] * step) * from[at] + b[i] * update;
      to[at] = s;
      read += c[i] * s;
    }
    a.out[t * a.n_channel + channel] = read;
    from = to;
  }
}

}  // namespace

void channel_scan(Context& ctx, const ChannelScan& s) {
  const auto values = [](const Tensor& t) { return static_cast<const float*>(t.data); };
  const auto weight = [&](const Tensor& t) { return values(ctx.weights().on_device(t)); };
  const ChannelScanArguments arguments = {.x = values(s.x),
                                          .step = values(s.step),
                                          .b = values(s.b),
                                          .c = values(s.c),
                                          .rate = weight(s.rate),
                                          .skip = weight(s.skip),
                                          .out = static_cast<float*>(s.out.data),
                                          .n_channel = s.n_channel(),
                                          .d_state = s.d_state()};
  const int64_t n_blocks = (s.n_channel() + kChannelThreads - 1) / kChannelThreads;
  const SequenceRows* const all = ctx.put(s.sequences);
  for (size_t begin = 0; begin < s.sequences.size();) {
    const size_t n = count_independent(s.sequences.subspan(begin));
    const Grid grid{dim3(n_blocks, n), dim3(kChannelThreads), 2 * s.d_state() * sizeof(float)};
    start_early(ctx, grid, channel_scan_kernel, arguments, all + begin);
    begin += n;
  }
}

}  // namespace snapkv::cuda
