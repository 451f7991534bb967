// SPDX-License-Identifier: MIT
// Products of few rows. Decoding reads every weight once, so bytes determine the cost.
//
//   Floor: bytes of the weights / memory bandwidth. Obstacles:
//   - loads in flight: a multiprocessor of an H200 needs about 33 KiB of them for each microsecond
//     of latency. A warp has 4 KiB (plain types, in registers) or 8 KiB (block types, in shared
//     memory) in flight. For plain types the warps of a block share four rows; for block types a
//     warp takes one row of matrices with few rows, so that there are more warps.
//   - activations from the first-level cache, 4 bytes per value and column in f32, 1.25 in 8 bits:
//     several columns share a load of weights, several rows a load of activations.
//   - instructions of f32 products, from 8 columns on: bf16 weights use the tensor cores.
//   - short kernels: projections of one input share one launch, and request weights before the
//     kernel that writes their input has ended.
//
// Block types: 8-bit products with activations that are rounded once per call, 32 to a scale; with
// compute type f32, products in f32. Results do not depend on the number of columns, except for
// bf16 weights, where more than kFmaCols columns use the tensor cores and another order.
#include <algorithm>
#include <vector>

#include "backend/cuda/project_blocks.cuh"
#include "backend/cuda/project_plain.cuh"
#include "backend/cuda/weight_store.h"
#include "base/check.h"

namespace snapkv::cuda {
namespace {

constexpr int kFmaCols = 4;

/// Products with weights of one type, and their input.
struct Call {
  Context& ctx;
  const Tensor& x;  // [n, n_in]
  std::span<const Projection> projections;
  const char* prepared = nullptr;  // by prepare_kernel
  const uint4* planes = nullptr;   // by split_kernel
  int n() const { return static_cast<int>(x.shape[0]); }
  int n_in() const { return static_cast<int>(x.shape[1]); }
  int n_rows() const {  // in all matrices
    int64_t rows = 0;
    for (const Projection& p : projections) rows += p.w.shape[0];
    return static_cast<int>(rows);
  }
  /// Whether a warp of block types may have two rows, because 32 warps on each multiprocessor have
  /// some anyway. Other thresholds have not been measured.
  bool has_many_rows() const { return n_rows() >= 64 * ctx.n_multiprocessors(); }
  bool is_aligned() const {
    const int64_t bytes = row_bytes(projections[0].w.dtype, x.shape[1]);
    return bytes % 16 == 0 && n_in() % 4 == 0 && aligned_16(x.data) &&
           std::all_of(projections.begin(), projections.end(),
                       [](const Projection& p) { return aligned_16(p.w.data); });
  }
};

/// Launches `kernel`, whose blocks have n_rows rows and n_cols columns, for all products.
template <typename... P>
void launch_products(const Call& call, int n_rows, int n_cols, int n_threads, size_t shared_bytes,
                     void (*kernel)(const Products, P...), std::type_identity_t<P>... arguments) {
  Products products{};
  int64_t n_blocks = 0;
  for (const Projection& p : call.projections) {
    const int64_t n_out = p.w.shape[0];
    if (n_out == 0) continue;
    products.items[products.n++] = {
        .w = static_cast<const char*>(p.w.data),
        .bias = p.bias ? static_cast<const float*>(p.bias.data) : nullptr,
        .out = static_cast<float*>(p.out.data),
        .n_out = static_cast<int>(n_out),
        .first_block = static_cast<int>(n_blocks),
        .accumulate = p.accumulate};
    n_blocks += div_up(n_out, n_rows);
  }
  if (n_blocks == 0) return;
  const Grid grid{dim3(n_blocks, div_up(call.n(), n_cols)), dim3(n_threads), shared_bytes};
  start_early(call.ctx, grid, kernel, products, arguments...);
}

// ---------------------------------------------------------------- plain types

template <typename T, int n_cols, int n_loads, int n_blocks>
void run_plain(const Call& call) {
  launch_products(call, kPlainRows, n_cols, kProjectThreads, 0,
                  project_plain_kernel<T, n_cols, n_loads, n_blocks>,
                  static_cast<const float*>(call.x.data), call.n(), call.n_in());
}

template <int n_tiles>
void run_bf16(const Call& call) {
  launch_products(call, kBf16Rows, n_tiles * kPlaneCols, kBf16Threads, 0,
                  project_bf16_kernel<n_tiles>, call.planes, call.n(), call.n_in(),
                  static_cast<int>(div_up(call.n_in(), kPlaneChunk)));
}

template <typename T>
void project_plain(const Call& call) {
  const int n = call.n();
  if (!call.is_aligned()) {
    launch_products(call, kProjectWarps, kScalarCols, kProjectThreads, 0, project_scalar_kernel<T>,
                    static_cast<const float*>(call.x.data), n, call.n_in());
  } else if (call.planes != nullptr) {
    n <= 8 ? run_bf16<1>(call) : n <= 16 ? run_bf16<2>(call) : run_bf16<4>(call);
  } else if (n == 1) {
    run_plain<T, 1, 2, 6>(call);
  } else if (n == 2) {
    run_plain<T, 2, 2, 5>(call);
  } else if (n <= 4) {
    run_plain<T, 4, 2, 4>(call);
  } else {
    run_plain<T, 8, 1, 4>(call);
  }
}

bool uses_planes(const Context& ctx, const Call& call) {
  return call.projections[0].w.dtype == DType::bf16 && ctx.compute() == DType::bf16 &&
         call.n() > kFmaCols && call.is_aligned();
}

const uint4* split(Context& ctx, const Tensor& x, void* memory) {
  const auto n = static_cast<int>(x.shape[0]), n_in = static_cast<int>(x.shape[1]);
  const auto n_chunks = static_cast<int>(div_up(n_in, kPlaneChunk));
  const Grid grid{dim3(div_up(n_chunks, kSplitThreads / kWarpSize), div_up(n, kPlaneCols)),
                  dim3(kSplitThreads)};
  auto* planes = static_cast<uint4*>(memory);
  start_early(ctx, grid, split_kernel, static_cast<const float*>(x.data), n, n_in, n_chunks,
              planes);
  return planes;
}

// ---------------------------------------------------------------- block types

template <bool exact, typename F, int n_rows, int n_cols>
void run_blocks(const Call& call) {
  launch_products(call, kProjectWarps * n_rows, n_cols, kProjectThreads,
                  WeightRing<F, n_rows>::kSharedBytes,
                  project_blocks_kernel<exact, F, n_rows, n_cols>, call.prepared, call.n(),
                  call.n_in(), static_cast<int>(div_up(call.n_in(), kStepValues)));
}

template <typename F>
void project_blocks(const Call& call) {
  const int n = call.n();
  if (call.ctx.compute() == DType::f32) {
    n == 1 ? run_blocks<true, F, 1, 1>(call) : run_blocks<true, F, 2, 4>(call);
  } else if (n == 1) {
    call.has_many_rows() ? run_blocks<false, F, 2, 1>(call) : run_blocks<false, F, 1, 1>(call);
  } else if (n == 2) {
    run_blocks<false, F, 2, 2>(call);
  } else if (n <= 4) {
    run_blocks<false, F, 4, 4>(call);
  } else if (n <= 8) {
    run_blocks<false, F, 4, 8>(call);
  } else {
    run_blocks<false, F, 4, 16>(call);
  }
}

constexpr int kMaxCols = 16;  // per kernel

int64_t prepared_bytes(const Context& ctx, int64_t n, int64_t n_in) {
  return div_up(n, kMaxCols) * kMaxCols * div_up(n_in, kStepValues) *
         (ctx.compute() == DType::f32 ? kPreparedBytes<true> : kPreparedBytes<false>);
}

const char* prepare(Context& ctx, const Tensor& x, void* memory) {
  const auto n_in = static_cast<int>(x.shape[1]);
  const Grid grid{dim3(div_up(n_in, kStepValues), x.shape[0]), dim3(kPrepareThreads)};
  auto* prepared = static_cast<char*>(memory);
  start_early(ctx, grid, ctx.compute() == DType::f32 ? prepare_kernel<true> : prepare_kernel<false>,
              static_cast<const float*>(x.data), n_in, prepared);
  return prepared;
}

void project_type(const Call& call) {
  visit_weight_type(call.projections[0].w.dtype, [&](auto type) {
    using Source = typename Format<type.dtype>::Source;
    if constexpr (block_size(type.dtype) > 1) {
      project_blocks<Source>(call);
    } else {
      project_plain<Source>(call);
    }
  });
}

}  // namespace

void project(Context& ctx, const Tensor& x, std::span<const Projection> projections) {
  constexpr size_t kMostStreamed = WeightStore::kStaged / 2;  // each with its bias
  const bool streams = std::any_of(projections.begin(), projections.end(), [&](const auto& p) {
    return !ctx.weights().is_resident(p.w) || (p.bias && !ctx.weights().is_resident(p.bias));
  });
  if (streams && projections.size() > kMostStreamed) {
    project(ctx, x, projections.first(kMostStreamed));
    project(ctx, x, projections.subspan(kMostStreamed));
    return;
  }
  // Groups projections by type, in the order in which the types first appear.
  std::vector<Projection> sorted(projections.begin(), projections.end());
  for (Projection& p : sorted) {
    p.w = ctx.weights().on_device(p.w);
    p.bias = ctx.weights().on_device(p.bias);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Projection& a, const Projection& b) { return a.w.dtype < b.w.dtype; });
  std::vector<Call> calls;
  bool blocks = false, planes = false;
  for (size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    while (end < sorted.size() && end - begin < kMaxProducts &&
           sorted[end].w.dtype == sorted[begin].w.dtype) {
      ++end;
    }
    calls.push_back(
        {.ctx = ctx, .x = x, .projections = std::span(sorted).subspan(begin, end - begin)});
    blocks |= block_size(sorted[begin].w.dtype) > 1;
    planes |= uses_planes(ctx, calls.back());
  }

  const int64_t n = x.shape[0], n_in = x.shape[1];
  const int64_t n_prepared = blocks ? prepared_bytes(ctx, n, n_in) : 0;
  const int64_t n_planes = planes ? plane_bytes(n, n_in) : 0;
  char* memory = nullptr;
  if (n_prepared + n_planes > 0) {
    memory = static_cast<char*>(ctx.scratch(n_prepared + n_planes));
  }
  const char* prepared = n_prepared > 0 ? prepare(ctx, x, memory) : nullptr;
  const uint4* split_x = n_planes > 0 ? split(ctx, x, memory + n_prepared) : nullptr;
  for (Call& call : calls) {
    call.prepared = prepared;
    if (uses_planes(ctx, call)) call.planes = split_x;
    project_type(call);
  }
}

void project_each(Context& ctx, const Tensor& x, std::span<const Projection> projections) {
  int64_t begin = 0;
  for (const Projection& p : projections) {
    const int64_t end = begin + p.out.shape[0];
    if (end > begin) project(ctx, x.slice(begin, end), {&p, 1});
    begin = end;
  }
}

}  // namespace snapkv::cuda
