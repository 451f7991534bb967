// SPDX-License-Identifier: MIT
// Weights as f32 or bf16: rows for embed(), whole matrices for prefill. A thread writes 8 values,
// so a warp writes 512 consecutive bytes (bf16); its reads overlap those of its neighbours in the
// first-level cache. Floor: bytes read + bytes written, mostly the latter; the limit is the memory.
#include <algorithm>
#include <type_traits>

#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/dequantize_codebooks.cuh"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/load_values.cuh"
#include "backend/cuda/ptx.cuh"
#include "backend/cuda/weight_store.h"
#include "base/check.h"

namespace snapkv::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kValues = kLoadedValues;  // per thread

template <typename Out>
__device__ __forceinline__ void store_values(Out* to, int64_t i, int64_t n, bool vectors,
                                             const float (&v)[kValues]) {
  if (vectors) {
    alignas(16) Out values[kValues];
#pragma unroll
    for (int k = 0; k < kValues; ++k) values[k] = from_float<Out>(v[k]);
#pragma unroll
    for (size_t k = 0; k < sizeof(values) / 16; ++k) {
      reinterpret_cast<uint4*>(to + i)[k] = reinterpret_cast<const uint4*>(values)[k];
    }
  } else {
#pragma unroll
    for (int k = 0; k < kValues; ++k) {
      if (i + k < n) to[i + k] = from_float<Out>(v[k]);
    }
  }
}

// Row blockIdx.y of out is row ids[blockIdx.y] of `from`, or row blockIdx.y without ids; n values.
template <typename S, typename Out>
__global__ void __launch_bounds__(kThreads)
    expand_kernel(const char* from, int64_t row_bytes, const int32_t* ids, int64_t n, Out* out) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  const int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kValues;
  if (i >= n) return;
  const char* row = from + (ids != nullptr ? ids[blockIdx.y] : blockIdx.y) * row_bytes;
  Out* to = out + blockIdx.y * n;
  const bool whole = i + kValues <= n;
  float v[kValues];
  load_values<S>(row, i, n, whole && reinterpret_cast<uintptr_t>(row) % 16 == 0, v);
  store_values(to, i, n, whole && reinterpret_cast<uintptr_t>(to) % 16 == 0, v);
}

template <typename Out>
void run(Context& ctx, const Tensor& weight, int64_t row_bytes, const int32_t* ids, int64_t n_rows,
         int64_t n, Out* out) {
  const auto run_type = [&](void (*kernel)(const char*, int64_t, const int32_t*, int64_t, Out*)) {
    const Grid grid{dim3(div_up(n, int64_t{kThreads} * kValues), n_rows), dim3(kThreads)};
    start_early(ctx, grid, kernel, static_cast<const char*>(weight.data), row_bytes, ids, n, out);
  };
  visit_weight_type(weight.dtype, [&](auto type) {
    run_type(expand_kernel<typename Format<type.dtype>::Source, Out>);
  });
}

}  // namespace

void embed(Context& ctx, const Tensor& weight, std::span<const int32_t> ids, const Tensor& out) {
  const Tensor rows = ctx.weights().on_device(weight);
  constexpr size_t kMaxRows = 65535;  // per grid
  const int64_t n = out.shape[1];
  for (size_t begin = 0; begin < ids.size(); begin += kMaxRows) {
    const auto part = ids.subspan(begin, std::min(kMaxRows, ids.size() - begin));
    run(ctx, rows, row_bytes(rows.dtype, n), ctx.put(part), std::ssize(part), n,
        out.at<float>(begin));
  }
}

void expand(Context& ctx, const Tensor& weight, const Tensor& out) {
  const int64_t n = weight.numel();  // a matrix is one long row, since rows are whole blocks
  if (n == 0) return;
  if (out.dtype == DType::bf16) {
    run(ctx, weight, 0, nullptr, 1, n, static_cast<__nv_bfloat16*>(out.data));
  } else {
    run(ctx, weight, 0, nullptr, 1, n, static_cast<float*>(out.data));
  }
}

}  // namespace snapkv::cuda
