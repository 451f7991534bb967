// SPDX-License-Identifier: MIT
// pack() and project_packed(): many rows, through oneDNN. x [n, n_in] times w^T, where the library
// sees w^T as its [n_in, n_out] "weights".
//
// Weights are packed in one of two layouts, whichever the library's best product for this processor
// reads: the panels of pack.h (AVX-512 and AMX) or plain rows. Either way the output is cut into
// tiles (product_tiling.h) that one thread each computes, so that results do not depend on how many
// threads there are.
#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>

#include "backend/cpu/convert.h"
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/omp_threads.h"
#include "backend/cpu/pack.h"
#include "backend/cpu/product_tiling.h"
#include "backend/cpu/scratch.h"
#include "backend/cpu/tile_product.h"
#include "base/error.h"

namespace snapkv::cpu {
namespace {

/// Calls f and turns the library's exceptions into ours.
template <typename F>
auto checked(const char* what, F&& f) {
  try {
    return f();
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_out_of_memory) fail(ErrorCode::kDoesNotFit, "{}: out of memory", what);
    fail(ErrorCode::kRuntime, "{}: oneDNN: {}", what, e.what());
  }
}

struct CpuPackedLayout : PackedLayout {
  bool panels = false;
};

/// Packs as rows: [n_out, n_in] in the compute type.
void pack_rows(const CpuContext& ctx, const Tensor& weight, void* dst) {
  const int64_t n_out = weight.shape[0], n_in = weight.shape[1];
#pragma omp parallel for num_threads(ctx.n_threads)
  for (int64_t r = 0; r < n_out; ++r) {
    const void* src = weight.at<const void>(r);
    if (ctx.compute == DType::bf16) {
      convert_row(src, weight.dtype, n_in, static_cast<bf16_t*>(dst) + r * n_in);
    } else {
      convert_row(src, weight.dtype, n_in, static_cast<float*>(dst) + r * n_in);
    }
  }
}

/// One project_packed() call: the work that threads share.
class TiledProduct {
 public:
  /// `whole`: the shape of the whole product.
  TiledProduct(const TileShape& whole, const TileOperands& at)
      : whole_(whole),
        at_(at),
        tiling_(choose_tiling(whole.n, whole.n_out, whole.n_in, whole.panels)),
        staged_(whole.panels && tiling_.n_cols > 1) {
    for (const bool last_row : {false, true}) {
      for (const bool last_col : {false, true}) {
        TileShape tile = whole;
        tile.n = last_row ? whole.n - (tiling_.n_rows - 1) * tiling_.rows : tiling_.rows;
        tile.n_out = last_col ? whole.n_out - (tiling_.n_cols - 1) * tiling_.cols : tiling_.cols;
        if (staged_) {
          tile.out_stride = tile.n_out;
          tile.accumulate = false;
        }
        products_[last_row][last_col] = TileProduct::get(tile);
        library_bytes_ = std::max(library_bytes_, products_[last_row][last_col]->scratch_bytes());
      }
    }
    library_bytes_ = (library_bytes_ + 63) / 64 * 64;
    if (staged_) staging_bytes_ = tiling_.rows * row_bytes(whole.out, tiling_.cols);
    staging_bytes_ = (staging_bytes_ + 63) / 64 * 64;
  }

  void run(const CpuContext& ctx) const {
    const int n_threads = team_size(ctx, tiling_.n_rows * tiling_.n_cols > 1);
    const int64_t thread_bytes = static_cast<int64_t>(library_bytes_) + staging_bytes_;
    char* memory = scratch(thread_bytes * n_threads);
    std::atomic<int> status = dnnl_success;  // nothing may be thrown inside
#pragma omp parallel num_threads(n_threads)
    {
      Thread thread(memory + thread_bytes * omp_get_thread_num());
#pragma omp for schedule(dynamic, 1) collapse(2)
      for (int64_t c = 0; c < tiling_.n_cols; ++c) {
        for (int64_t r = 0; r < tiling_.n_rows; ++r) {
          try {
            run_tile(r, c, thread);
          } catch (const dnnl::error& e) {
            status = e.status;
          } catch (const std::bad_alloc&) {
            status = dnnl_out_of_memory;
          }
        }
      }
    }
    if (status != dnnl_success) {
      throw dnnl::error(static_cast<dnnl_status_t>(status.load()), "a tile's product failed");
    }
  }

 private:
  /// What one thread needs to compute its tiles.
  struct Thread {
    explicit Thread(char* m) : memory(m) {}
    char* memory;
    std::array<std::array<std::optional<TileRun>, 2>, 2> runs;  // as products_, made when needed
  };

  void run_tile(int64_t r, int64_t c, Thread& thread) const {
    const bool last_row = r + 1 == tiling_.n_rows, last_col = c + 1 == tiling_.n_cols;
    const int64_t row = r * tiling_.rows, col = c * tiling_.cols;
    const int64_t panel_bytes = packed_bytes(whole_.compute, kPanelRows, whole_.n_in);
    char* out =
        at_.out + row * row_bytes(whole_.out, whole_.out_stride) + row_bytes(whole_.out, col);
    char* staging = thread.memory + library_bytes_;
    std::optional<TileRun>& run = thread.runs[last_row][last_col];
    if (!run) run.emplace(*products_[last_row][last_col], thread.memory);
    (*run)({.x = at_.x + row * row_bytes(whole_.compute, whole_.n_in),
            .w = at_.w + (whole_.panels ? col / kPanelRows * panel_bytes
                                        : col * row_bytes(whole_.compute, whole_.n_in)),
            .bias = whole_.bias ? at_.bias + row_bytes(DType::f32, col) : nullptr,
            .out = staged_ ? staging : out});
    if (!staged_) return;
    const int64_t n = std::min(tiling_.rows, whole_.n - row);
    store_staged(staging, n, std::min(tiling_.cols, whole_.n_out - col), out);
  }

  /// out (+)= the staged tile of [n, n_cols].
  void store_staged(const char* staging, int64_t n, int64_t n_cols, char* out) const {
    const int64_t from_row = row_bytes(whole_.out, n_cols);
    const int64_t to_row = row_bytes(whole_.out, whole_.out_stride);
    for (int64_t i = 0; i < n; ++i) {
      const char* from = staging + i * from_row;
      char* to = out + i * to_row;
      if (whole_.accumulate) {
        const float* values = reinterpret_cast<const float*>(from);
        float* sums = reinterpret_cast<float*>(to);
        for (int64_t j = 0; j < n_cols; ++j) sums[j] += values[j];
      } else {
        std::copy(from, from + from_row, to);
      }
    }
  }

  const TileShape& whole_;
  const TileOperands& at_;
  const Tiling tiling_;
  const bool staged_;  // tiles are computed in scratch memory, then stored
  std::array<std::array<std::shared_ptr<const TileProduct>, 2>, 2> products_;  // [last rows][cols]
  size_t library_bytes_ = 0;
  int64_t staging_bytes_ = 0;
};

}  // namespace

bool multiplies_bf16() {
  static const bool result = [] {
    const OmpThreads one(1);
    try {
      prefers_panels(DType::bf16, kPanelRows, kPanelRows);
      return true;
    } catch (const dnnl::error&) {  // no implementation
      return false;
    }
  }();
  return result;
}

void pack(const CpuContext& ctx, const Tensor& weight, PackedWeight& packed) {
  const int64_t n_out = weight.shape[0], n_in = weight.shape[1];
  checked("packing weights", [&] {
    const OmpThreads one(1);
    const bool panels = prefers_panels(ctx.compute, n_out, n_in);
    const size_t bytes =
        panels ? packed_bytes(ctx.compute, n_out, n_in) : n_out * row_bytes(ctx.compute, n_in);
    if (packed.storage.bytes() < bytes) {
      packed.storage = Buffer();  // free first: the contents need not survive
      packed.storage = Buffer::host(bytes, "packed weights");
    }
    panels ? pack_panels(ctx, weight, packed.storage.data())
           : pack_rows(ctx, weight, packed.storage.data());
    packed.n_out = n_out;
    packed.n_in = n_in;
    auto layout = std::make_unique<CpuPackedLayout>();
    layout->panels = panels;
    packed.layout = std::move(layout);
  });
}

void project_packed(const CpuContext& ctx, const Tensor& x, const PackedWeight& weight,
                    const Tensor& bias, const Tensor& out, bool accumulate) {
  if (x.shape[0] == 0) return;
  const TileShape whole{.n = x.shape[0],
                        .n_in = weight.n_in,
                        .n_out = weight.n_out,
                        .out_stride = weight.n_out,
                        .compute = ctx.compute,
                        .out = out.dtype,
                        .panels = static_cast<const CpuPackedLayout&>(*weight.layout).panels,
                        .bias = static_cast<bool>(bias),
                        .accumulate = accumulate};
  const TileOperands at{.x = static_cast<char*>(x.data),
                        .w = static_cast<char*>(weight.storage.data()),
                        .bias = static_cast<char*>(bias.data),
                        .out = static_cast<char*>(out.data)};
  checked("matrix product", [&] {
    const OmpThreads one(1);
    TiledProduct(whole, at).run(ctx);
  });
}

}  // namespace snapkv::cpu
