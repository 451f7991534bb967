// SPDX-License-Identifier: MIT
// Op selective_scan: the scan of Mamba-2's states (backend/ops.def). One block computes a head of a
// sequence, token by token, each thread some columns of the head's state, which passes through the
// caches twice for each token. Floor: the state read and written once for each sequence, and 2
// d_state d_head multiplications and additions for each token and head.
#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/ptx.cuh"
#include "backend/cuda/sequences.h"
#include "backend/cuda/weight_store.h"

namespace snapkv::cuda {
namespace {

constexpr int kScanThreads = 64;

/// Sizes and addresses of a call.
struct ScanArguments {
  const float *xbc, *step, *rate, *step_bias, *skip;
  float* out;
  int64_t n_head, n_group, d_state, d_head, n_xbc;
};

// blockIdx.x: the head, blockIdx.y: the sequence. Shared memory: the token's B and C.
__global__ void __launch_bounds__(kScanThreads)
    selective_scan_kernel(ScanArguments a, const SequenceRows* sequences) {
  auto* const b = reinterpret_cast<float*>(dynamic_shared());
  float* const c = b + a.d_state;
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  const SequenceRows rows = sequences[blockIdx.y];
  const int64_t head = blockIdx.x, to_state = head * a.d_state * a.d_head;
  const int64_t group = head / (a.n_head / a.n_group);
  const float* from = static_cast<const float*>(rows.from) + to_state;
  auto* const to = static_cast<float*>(rows.to) + to_state;
  const float skip = a.skip[head];
  for (int64_t t = rows.begin; t < rows.end; ++t) {
    const float* const x = a.xbc + t * a.n_xbc + head * a.d_head;
    const float* const groups = a.xbc + t * a.n_xbc + a.n_head * a.d_head + group * a.d_state;
    __syncthreads();  // the token before has been computed
    for (int64_t i = threadIdx.x; i < a.d_state; i += kScanThreads) {
      b[i] = groups[i];
      c[i] = groups[a.n_group * a.d_state + i];
    }
    __syncthreads();
    const float wanted = a.step[t * a.n_head + head] + a.step_bias[head];
    const float step = wanted > 0.0f ? wanted + log1pf(expf(-wanted)) : log1pf(expf(wanted));
    const float decay = expf(a.rate[head] * step);
    for (int64_t j = threadIdx.x; j < a.d_head; j += kScanThreads) {
      const float update = step * x[j];
      float read = skip * x[j];
      for (int64_t i = 0; i < a.d_state; ++i) {
        const float s = decay * from[i * a.d_head + j] + b[i] * update;
        to[i * a.d_head + j] = s;
        read += c[i] * s;
      }
      a.out[(t * a.n_head + head) * a.d_head + j] = read;
    }
    from = to;
  }
}

}  // namespace

void selective_scan(Context& ctx, const SelectiveScan& s) {
  const auto weight = [&](const Tensor& t) {
    return static_cast<const float*>(ctx.weights().on_device(t).data);
  };
  const ScanArguments arguments = {.xbc = static_cast<const float*>(s.xbc.data),
                                   .step = static_cast<const float*>(s.step.data),
                                   .rate = weight(s.rate),
                                   .step_bias = weight(s.step_bias),
                                   .skip = weight(s.skip),
                                   .out = static_cast<float*>(s.out.data),
                                   .n_head = s.n_head(),
                                   .n_group = s.n_group,
                                   .d_state = s.d_state,
                                   .d_head = s.d_head(),
                                   .n_xbc = s.n_xbc()};
  const SequenceRows* const all = ctx.put(s.sequences);
  for (size_t begin = 0; begin < s.sequences.size();) {
    const size_t n = count_independent(s.sequences.subspan(begin));
    const Grid grid{dim3(s.n_head(), n), dim3(kScanThreads), 2 * s.d_state * sizeof(float)};
    start_early(ctx, grid, selective_scan_kernel, arguments, all + begin);
    begin += n;
  }
}

}  // namespace snapkv::cuda
