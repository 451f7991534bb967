// SPDX-License-Identifier: MIT
#include "backend/cpu/products/many_rows/tiled_product.h"

#include <omp.h>

#include <algorithm>

#include "backend/cpu/target/scratch.h"
#include "base/timer.h"

namespace snapkv::cpu {
namespace {

/// A matrix of at most this many bytes stays in the caches if it is packed whole.
constexpr int64_t kCachedBytes = 8 << 20;

/// The most that the library's product of a tile takes, for plans: it tells the size only of
/// products that it has made. A product that takes more gets more.
constexpr int64_t kMostLibraryBytes = 64 << 10;

constexpr int64_t round_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// Whether each thread packs the columns of the tiles that it computes. Otherwise all threads pack
/// the whole matrix first: if there are too few columns for threads to finish together, or they are
/// not divided.
bool packs_columns(const Tiling& t, int n_threads) {
  return t.n_cols > 1 && (t.n_cols % n_threads == 0 || t.n_cols >= 4 * n_threads);
}

int64_t workspace_bytes(const PackedShape& w, const Tiling& t, int n_threads) {
  return packs_columns(t, n_threads) ? n_threads * round_up(w.bytes_of(t.cols)) : w.bytes();
}

/// What a thread computes its tiles with: the library's memory, tiles on their way to the output,
/// and a panel that is being packed.
struct ThreadBytes {
  int64_t library = 0, staging = 0, pack = 0;
  int64_t all() const { return library + staging + pack; }
};

/// Whether tiles are computed in scratch memory, then stored.
bool is_staged(const TileShape& whole, const Tiling& t) { return whole.panels && t.n_cols > 1; }

ThreadBytes thread_bytes(const TileShape& whole, const Tiling& t, bool packs, int64_t library) {
  ThreadBytes bytes;
  bytes.library = round_up(library);
  if (is_staged(whole, t)) bytes.staging = round_up(t.rows * row_bytes(whole.out, t.cols));
  if (packs) bytes.pack = round_up(static_cast<int64_t>(pack_panel_scratch(whole.compute)));
  return bytes;
}

int threads_of(const CpuContext& ctx, const Tiling& t) {
  return team_size(ctx, t.n_rows * t.n_cols > 1);
}

}  // namespace

size_t pack_memory(const CpuContext& ctx, const PackedShape& w, int64_t n) {
  const Tiling t = choose_tiling(n, w.n_out, w.n_in, w.blocked);
  return workspace_bytes(w, t, threads_of(ctx, t));
}

size_t tiled_product_workspace(const CpuContext& ctx, const TileShape& whole, bool packs) {
  const Tiling t = choose_tiling(whole.n, whole.n_out, whole.n_in, whole.panels);
  return thread_bytes(whole, t, packs, kMostLibraryBytes).all() * threads_of(ctx, t);
}

TiledProduct::TiledProduct(const TileShape& whole, const TileOperands& at, const Tensor* weight,
                           PackWorkspace* workspace)
    : whole_(whole),
      at_(at),
      weight_(weight),
      workspace_(workspace),
      packed_shape_{.compute = whole.compute,
                    .n_out = whole.n_out,
                    .n_in = whole.n_in,
                    .blocked = whole.panels},
      tiling_(choose_tiling(whole.n, whole.n_out, whole.n_in, whole.panels)),
      staged_(is_staged(whole, tiling_)) {
  size_t library_bytes = 0;
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
      library_bytes = std::max(library_bytes, products_[last_row][last_col]->scratch_bytes());
    }
  }
  library_bytes_ = static_cast<int64_t>(library_bytes);
}

void TiledProduct::run(const CpuContext& ctx) {
  const int n_threads = threads_of(ctx, tiling_);
  const bool by_columns = weight_ != nullptr && packs_columns(tiling_, n_threads);
  const int64_t piece_bytes = round_up(packed_shape_.bytes_of(tiling_.cols));
  char* packed = at_.w;
  if (weight_ != nullptr) {
    Buffer& memory = workspace_->memory;
    const size_t n_bytes = workspace_bytes(packed_shape_, tiling_, n_threads);
    if (memory.bytes() < n_bytes) {
      memory = Buffer();  // free first, since the contents are not needed
      memory = Buffer::host(n_bytes, "packed weights");
    }
    packed = static_cast<char*>(memory.data());
  }
  const PackTo to = packed_shape_.bytes() <= kCachedBytes ? PackTo::caches : PackTo::memory;
  const ThreadBytes bytes = thread_bytes(whole_, tiling_, weight_ != nullptr, library_bytes_);
  char* memory = scratch(bytes.all() * n_threads);
  double pack_seconds = 0;
#pragma omp parallel num_threads(n_threads) reduction(+ : pack_seconds)
  {
    Thread thread;
    thread.library = memory + bytes.all() * omp_get_thread_num();
    thread.staging = thread.library + bytes.library;
    thread.pack = thread.staging + bytes.staging;
    if (by_columns) {
      char* piece = packed + omp_get_thread_num() * piece_bytes;
      const int64_t n_panels = tiling_.cols / kPanelRows;
#pragma omp for schedule(dynamic, 1)
      for (int64_t c = 0; c < tiling_.n_cols; ++c) {
        const int64_t first = c * n_panels;
        pack_panels_to(piece, first, std::min(n_panels, packed_shape_.n_panels() - first),
                       PackTo::caches, thread);
        for (int64_t r = 0; r < tiling_.n_rows; ++r) run_tile(r, c, piece, thread);
      }
    } else {
      if (weight_ != nullptr) {
#pragma omp for schedule(dynamic, 1)
        for (int64_t p = 0; p < packed_shape_.n_panels(); ++p) {
          pack_panels_to(packed + p * packed_shape_.panel_bytes(), p, 1, to, thread);
        }
      }
#pragma omp for schedule(dynamic, 1) collapse(2)
      for (int64_t c = 0; c < tiling_.n_cols; ++c) {
        for (int64_t r = 0; r < tiling_.n_rows; ++r) {
          run_tile(r, c, packed + packed_shape_.bytes_of(c * tiling_.cols), thread);
        }
      }
    }
    pack_seconds += thread.pack_seconds;
  }
  if (workspace_ != nullptr) workspace_->pack_seconds += pack_seconds / n_threads;
  if (status_ != dnnl_success) {
    throw dnnl::error(static_cast<dnnl_status_t>(status_.load()), "a tile's product failed");
  }
}

/// Packs panels [first, first + n) to `packed`.
void TiledProduct::pack_panels_to(char* packed, int64_t first, int64_t n, PackTo to,
                                  Thread& thread) const {
  const Timer timer;
  for (int64_t p = 0; p < n; ++p) {
    pack_panel(packed_shape_, *weight_, first + p, to, thread.pack,
               packed + p * packed_shape_.panel_bytes());
  }
  thread.pack_seconds += timer.seconds();
}

/// `w`: the tile's packed columns.
void TiledProduct::run_tile(int64_t r, int64_t c, char* w, Thread& thread) {
  const bool last_row = r + 1 == tiling_.n_rows, last_col = c + 1 == tiling_.n_cols;
  const int64_t row = r * tiling_.rows, col = c * tiling_.cols;
  char* out = at_.out + row * row_bytes(whole_.out, whole_.out_stride) + row_bytes(whole_.out, col);
  try {
    std::optional<TileRun>& run = thread.runs[last_row][last_col];
    if (!run) run.emplace(*products_[last_row][last_col], thread.library);
    (*run)({.x = at_.x + row * row_bytes(whole_.compute, whole_.n_in),
            .w = w,
            .bias = whole_.bias ? at_.bias + row_bytes(DType::f32, col) : nullptr,
            .out = staged_ ? thread.staging : out});
  } catch (const dnnl::error& e) {
    status_ = e.status;
    return;
  } catch (const std::bad_alloc&) {
    status_ = dnnl_out_of_memory;
    return;
  }
  if (!staged_) return;
  store_staged(thread.staging, std::min(tiling_.rows, whole_.n - row),
               std::min(tiling_.cols, whole_.n_out - col), out);
}

/// out (+)= the staged tile of [n, n_cols].
void TiledProduct::store_staged(const char* staging, int64_t n, int64_t n_cols, char* out) const {
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

}  // namespace snapkv::cpu
