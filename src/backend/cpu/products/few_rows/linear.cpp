// SPDX-License-Identifier: MIT
// project() and project_rows(): a few rows of activations times weights in their file's type. The
// output rows of all projections are divided among the threads, one run for each; the kernels are
// in gemv_*.cpp. (For many rows: matmul.cpp.)
#include <omp.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/products/few_rows/gemv.h"
#include "backend/cpu/products/few_rows/gemv_interleaved.h"
#include "backend/cpu/products/few_rows/project_rows.h"
#include "backend/cpu/target/chunk_shares.h"
#include "backend/cpu/target/scratch.h"
#include "backend/cpu/weights/interleaved_weights.h"
#include "base/half.h"
#include "base/per_thread.h"

namespace snapkv::cpu {
namespace {

/// Threads take weights in pieces of at most this many bytes, which stay in the L2 cache for a
/// second tile of rows. A piece is a sixteenth of a thread's share, so that threads finish
/// together, but several times larger than what is prefetched beyond its end.
constexpr int64_t kMaxChunkBytes = 256 * 1024;
constexpr int64_t kMinChunkBytes = 64 * 1024;
constexpr int64_t kChunksPerThread = 16;
constexpr int64_t kMaxChunkRows = 128;
/// With less than this to read, waking the other threads takes longer than the work.
constexpr int64_t kParallelBytes = 64 * 1024;

/// The kernel's function for weights, and where it reads them: from the file's rows, or from their
/// copy.
struct WeightRows {
  GemvFn function = nullptr;
  const char* at = nullptr;
};

WeightRows rows_to_read([[maybe_unused]] const CpuContext& ctx, const GemvKernel& kernel,
                        const Tensor& w) {
#if defined(__x86_64__)
  const char* copy = ctx.interleaved != nullptr ? ctx.interleaved->find(w) : nullptr;
  if (copy != nullptr && interleaves(ctx, w.dtype)) {
    return {gemv_interleaved_before(ctx.byte_products, w.dtype), copy};
  }
#endif
  return {kernel.function(w.dtype), static_cast<const char*>(w.data)};
}

/// This thread's memory for a job.
std::vector<int64_t>& thread_numbers() {
  static auto& numbers = *new PerThread<std::vector<int64_t>>;
  return numbers.get();
}

/// Activations prepared for one kernel.
struct Prepared {
  const GemvKernel* kernel = nullptr;
  int64_t stride = 0;    // bytes of a row
  char* data = nullptr;  // [n, n_units]
};

const GemvKernel& kernel_for(const CpuContext& ctx, DType weight) {
#if defined(__x86_64__)
  if (interleaves(ctx, weight)) return *gemv_interleaved(ctx.byte_products);
#endif
  if (ctx.rounds_activations) {
    if (const GemvKernel* int8 = gemv_int8(weight)) return *int8;
    if (weight == DType::bf16 && gemv_bf16() != nullptr) return *gemv_bf16();
  }
  return gemv_f32();
}

/// One call: the work that threads share. gemv_f32 reads x directly; for each other
/// kernel x is prepared at most once.
class ProjectJob {
 public:
  /// `rows`: the rows of x that each projection multiplies; empty: all.
  ProjectJob(const CpuContext& ctx, const Tensor& x, std::span<const Projection> projections,
             std::span<const RowRange> rows)
      : ctx_(ctx),
        x_(x),
        projections_(projections),
        rows_(rows),
        n_units_((x.n_cols() + kGemvUnit - 1) / kGemvUnit) {
    for (const Projection& p : projections_) {
      weight_bytes_ += p.w.shape[0] * row_bytes(p.w.dtype, p.w.n_cols());
    }
    chunk_bytes_ = std::clamp(weight_bytes_ / (ctx.n_threads * kChunksPerThread), kMinChunkBytes,
                              kMaxChunkBytes);
    first_chunks_.clear();
    for (const Projection& p : projections_) {
      const GemvKernel& kernel = kernel_for(ctx, p.w.dtype);
      first_chunks_.push_back(n_chunks_);
      n_chunks_ += count_chunks(p);
      if (kernel.unit_bytes == 0 || find(kernel) != nullptr) continue;
      const int64_t stride = n_units_ * static_cast<int64_t>(kernel.unit_bytes);
      prepared_[n_prepared_++] = {.kernel = &kernel, .stride = stride, .data = nullptr};
    }
    n_threads_ = team_size(ctx, weight_bytes_ * x.shape[0] >= kParallelBytes);
  }

  /// Bytes of scratch memory: the threads' shares, and activations as kernels want them.
  size_t workspace() const {
    int64_t bytes = share_bytes();
    for (size_t i = 0; i < n_prepared_; ++i) bytes += x_.shape[0] * prepared_[i].stride;
    return bytes;
  }

  void run() {
    char* memory = scratch(workspace());
    shares_.emplace(reinterpret_cast<ChunkShares::Share*>(memory), n_threads_, n_chunks_);
    memory += share_bytes();
    for (size_t i = 0; i < n_prepared_; ++i) {
      prepared_[i].data = memory;
      memory += x_.shape[0] * prepared_[i].stride;
    }
#pragma omp parallel num_threads(n_threads_) if (n_threads_ > 1)
    {
      const int thread = omp_get_thread_num();
      fetch_first(shares_->peek(thread));
      for (size_t i = 0; i < n_prepared_; ++i) {
#pragma omp for schedule(static)
        for (int64_t u = 0; u < x_.shape[0] * n_units_; ++u) prepare_unit(prepared_[i], u);
      }
      for (int64_t c; (c = shares_->take(thread)) >= 0;) multiply_chunk(c);
    }
  }

 private:
  int64_t share_bytes() const {
    return n_threads_ * static_cast<int64_t>(sizeof(ChunkShares::Share));
  }
  /// Rows per chunk: a multiple of the kernels' tiles.
  int64_t chunk_rows(const Projection& p) const {
    const int64_t row = std::max<int64_t>(row_bytes(p.w.dtype, p.w.n_cols()), 1);
    const int64_t tile = interleaves(ctx_, p.w.dtype) ? kInterleavedRows : 4;
    return std::clamp<int64_t>(chunk_bytes_ / row / tile * tile, tile, kMaxChunkRows);
  }
  int64_t count_chunks(const Projection& p) const {
    return (p.w.shape[0] + chunk_rows(p) - 1) / chunk_rows(p);
  }

  const Prepared* find(const GemvKernel& kernel) const {
    for (size_t i = 0; i < n_prepared_; ++i) {
      if (prepared_[i].kernel == &kernel) return &prepared_[i];
    }
    return nullptr;
  }

  void prepare_unit(const Prepared& prepared, int64_t u) const {
    const int64_t row = u / n_units_, begin = u % n_units_ * kGemvUnit;
    char* unit = prepared.data + row * prepared.stride +
                 u % n_units_ * static_cast<int64_t>(prepared.kernel->unit_bytes);
    const int64_t n = std::min(kGemvUnit, x_.n_cols() - begin);
    if (x_.dtype == DType::f32) {
      return prepared.kernel->prepare(x_.at<const float>(row) + begin, n, unit);
    }
    const bf16_t* x = x_.at<const bf16_t>(row) + begin;
    std::array<float, kGemvUnit> values;
    for (int64_t i = 0; i < n; ++i) values[i] = to_f32(x[i]);
    prepared.kernel->prepare(values.data(), n, unit);
  }

  /// The projection that chunk `chunk`, counted over all projections, belongs to, and its first
  /// row.
  std::pair<const Projection*, int64_t> rows_of(int64_t chunk) const {
    const auto after = std::upper_bound(first_chunks_.begin(), first_chunks_.end(), chunk);
    const auto i = after - first_chunks_.begin() - 1;
    const Projection& p = projections_[i];
    return {&p, (chunk - first_chunks_[i]) * chunk_rows(p)};
  }

  /// Prefetches the beginning of a chunk's weights while the activations are prepared, as far as
  /// kernels prefetch ahead. Does nothing for chunk -1.
  void fetch_first(int64_t chunk) const {
    if (chunk < 0) return;
    const auto [p, first] = rows_of(chunk);
    const char* w =
        rows_to_read(ctx_, kernel_for(ctx_, p->w.dtype), p->w).at + first * p->w.stride[0];
    const int64_t bytes =
        std::min(kPrefetchBytes, (p->w.shape[0] - first) * row_bytes(p->w.dtype, p->w.n_cols()));
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(w + i, 0, 2);
  }

  void multiply_chunk(int64_t chunk) const {
    const auto [p, first] = rows_of(chunk);
    const RowRange rows = rows_.empty() ? RowRange{0, x_.shape[0]} : rows_[p - projections_.data()];
    const GemvKernel& kernel = kernel_for(ctx_, p->w.dtype);
    const Prepared* prepared = find(kernel);
    const WeightRows weights = rows_to_read(ctx_, kernel, p->w);

    std::array<float, kGemvMaxRows * kMaxChunkRows> sums;
    GemvCall call;
    call.w = weights.at + first * p->w.stride[0];
    call.w_stride = p->w.stride[0];
    call.n_rows = std::min(chunk_rows(*p), p->w.shape[0] - first);
    call.n_in = x_.n_cols();
    call.x_stride = prepared != nullptr ? prepared->stride : x_.stride[0];
    call.sums = sums.data();
    call.sums_stride = kMaxChunkRows;
    for (int64_t t = rows.begin; t < rows.end; t += kGemvMaxRows) {
      const char* x = prepared != nullptr ? prepared->data : static_cast<const char*>(x_.data);
      call.x = x + t * call.x_stride;
      call.n = static_cast<int>(std::min<int64_t>(kGemvMaxRows, rows.end - t));
      weights.function(call);
      for (int i = 0; i < call.n; ++i) {
        store(*p, t - rows.begin + i, first, call.n_rows, call.sums + i * call.sums_stride);
      }
    }
  }

  /// out[t, first ...] = sums (+ bias) (+ out).
  static void store(const Projection& p, int64_t t, int64_t first, int64_t n, const float* sums) {
    float* out = p.out.at<float>(t) + first;
    const float* bias = p.bias ? static_cast<const float*>(p.bias.data) + first : nullptr;
    for (int64_t r = 0; r < n; ++r) {
      float sum = sums[r];
      if (bias != nullptr) sum += bias[r];
      if (p.accumulate) sum += out[r];
      out[r] = sum;
    }
  }

  const CpuContext& ctx_;
  const Tensor& x_;  // [n, n_in] f32, or bf16 for kernels that prepare it
  const std::span<const Projection> projections_;
  const std::span<const RowRange> rows_;
  const int64_t n_units_;
  int n_threads_ = 1;
  int64_t weight_bytes_ = 0;
  int64_t chunk_bytes_ = 0;
  int64_t n_chunks_ = 0;  // of all projections
  /// Of each projection; kept from call to call, so that decoding allocates nothing.
  std::vector<int64_t>& first_chunks_ = thread_numbers();
  std::array<Prepared, 5> prepared_;  // for gemv_int8, at most 4, and for gemv_bf16
  size_t n_prepared_ = 0;
  std::optional<ChunkShares> shares_;
};

}  // namespace

size_t project_workspace(const CpuContext& ctx, const Tensor& x,
                         std::span<const Projection> projections) {
  return ProjectJob(ctx, x, projections, {}).workspace();
}

void project(const CpuContext& ctx, const Tensor& x, std::span<const Projection> projections) {
  if (x.shape[0] == 0) return;
  ProjectJob(ctx, x, projections, {}).run();
}

namespace {

/// The rows of x that each projection of project_each() multiplies.
std::vector<RowRange> consecutive_rows(std::span<const Projection> projections) {
  std::vector<RowRange> rows;
  for (int64_t begin = 0; const Projection& p : projections) {
    rows.push_back({begin, begin + p.out.shape[0]});
    begin += p.out.shape[0];
  }
  return rows;
}

}  // namespace

size_t project_each_workspace(const CpuContext& ctx, const Tensor& x,
                              std::span<const Projection> projections) {
  return ProjectJob(ctx, x, projections, consecutive_rows(projections)).workspace();
}

void project_each(const CpuContext& ctx, const Tensor& x, std::span<const Projection> projections) {
  const std::vector<RowRange> rows = consecutive_rows(projections);
  ProjectJob(ctx, x, projections, rows).run();
}

void project_rows(const CpuContext& ctx, const Tensor& x, std::span<const Projection> projections,
                  std::span<const RowRange> rows) {
  if (projections.empty()) return;
  ProjectJob(ctx, x, projections, rows).run();
}

}  // namespace snapkv::cpu
