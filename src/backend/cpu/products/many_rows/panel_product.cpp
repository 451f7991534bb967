// SPDX-License-Identifier: MIT
// Activations are rounded first, once for all weights; then threads take tasks: 64 output rows for
// a group of activation rows. One task computes each output completely, in an order that depends on
// n_in alone, so results depend neither on the number of threads nor on the other rows.
#include "backend/cpu/products/many_rows/panel_product.h"

#include <omp.h>

#include <algorithm>
#include <cstring>

#include "backend/cpu/target/scratch.h"
#include "backend/cpu/weights/interleave.h"
#include "backend/cpu/weights/interleaved_weights.h"
#include "base/check.h"
#include "base/half.h"

namespace snapkv::cpu {
namespace {

/// Activation rows of a task: their sums, 256 bytes each, stay in the L2 cache beside the tiles
/// that pass through. Fewer rows if there would be too few tasks for threads to finish together.
constexpr int64_t kTaskTiles = 512 / kByteTileRows;
constexpr int64_t kMinTaskTiles = 64 / kByteTileRows;
constexpr int64_t kTasksPerThread = 8;

/// q8_0 has the most of all block types.
constexpr int64_t kMostUnitBytes = row_bytes(DType::q8_0, kGemvUnit);

constexpr int64_t tiles_of(int64_t n) { return (n + kByteTileRows - 1) / kByteTileRows; }
constexpr int64_t units_of(int64_t n_in) { return (n_in + kGemvUnit - 1) / kGemvUnit; }

/// Zeroes the end of rows that are shorter than a unit, scales included, at the end of weights.
void zero_ends(char* rows, int64_t n_rows, int64_t unit_bytes, int64_t n_bytes) {
  for (int64_t r = 0; n_bytes < unit_bytes && r < n_rows; ++r) {
    std::memset(rows + r * unit_bytes + n_bytes, 0, static_cast<size_t>(unit_bytes - n_bytes));
  }
}

/// The interleaved copy of the weights; null if there is none.
const char* find_copy(const CpuContext& ctx, const PanelOperands& operands) {
  if (operands.interleaved != nullptr || ctx.interleaved == nullptr) return operands.interleaved;
  return interleaves(ctx, operands.w.dtype) ? ctx.interleaved->find(operands.w) : nullptr;
}

}  // namespace

BytePanelKernel byte_panel_kernel([[maybe_unused]] ByteProducts products,
                                  [[maybe_unused]] DType weight) {
  BytePanelKernel kernel;
#if defined(__x86_64__)
  kernel.prepare = prepare_byte_tile_avx2();
  kernel.unpack = unpack_byte_piece_avx2(weight);
  kernel.unpack_interleaved = unpack_interleaved_avx2(weight);
  if (products == ByteProducts::avx512_vnni) {
    if (const auto unpack = unpack_byte_piece_avx512(weight)) kernel.unpack = unpack;
    kernel.unpack_interleaved = unpack_interleaved_avx512(weight);
    kernel.multiply = multiply_byte_tiles_vnni(weight);
  }
  if (products == ByteProducts::avx_vnni) kernel.multiply = multiply_byte_tiles_avx_vnni(weight);
  if (products == ByteProducts::avx2) kernel.multiply = multiply_byte_tiles_avx2(weight);
#endif
  return kernel;
}

size_t panel_product_workspace(const CpuContext& ctx, int64_t n, int64_t n_in) {
  PanelProduct::Memory memory;
  return PanelProduct::cut_memory(ctx, n, n_in, nullptr, memory);
}

size_t PanelProduct::cut_memory(const CpuContext& ctx, int64_t n, int64_t n_in, char* begin,
                                Memory& m) {
  const int64_t task_rows = std::min(kTaskTiles, tiles_of(n)) * kByteTileRows;
  ScratchCutter cutter(begin);
  m.tiles = cutter.take<ByteTile>(units_of(n_in) * tiles_of(n));
  m.pieces = cutter.take<char>(ctx.n_threads * kBytePieceBytes);
  m.copies = cutter.take<char>(ctx.n_threads * kBytePanelRows * kMostUnitBytes);
  m.sums = cutter.take<float>(ctx.n_threads * task_rows * kBytePanelRows);
  return cutter.used();
}

PanelProduct::PanelProduct(const CpuContext& ctx, const PanelOperands& operands)
    : ctx_(ctx),
      at_(operands),
      kernel_(byte_panel_kernel(ctx.byte_products, operands.w.dtype)),
      interleaved_(find_copy(ctx, operands)),
      n_tiles_(tiles_of(operands.x.shape[0])),
      n_panels_((operands.w.shape[0] + kBytePanelRows - 1) / kBytePanelRows),
      task_tiles_(std::min(kTaskTiles, n_tiles_)) {
  while (task_tiles_ > kMinTaskTiles &&
         n_panels_ * n_groups() < int64_t{ctx.n_threads} * kTasksPerThread) {
    task_tiles_ = std::max(task_tiles_ / 2, kMinTaskTiles);
  }
  const int64_t n = at_.x.shape[0], n_in = at_.x.n_cols();
  cut_memory(ctx, n, n_in, scratch(panel_product_workspace(ctx, n, n_in)), memory_);
}

void PanelProduct::run() {
  const int n_threads = team_size(ctx_, n_panels_ * n_groups() > 1);
#pragma omp parallel num_threads(n_threads)
  {
#pragma omp for schedule(static)
    for (int64_t t = 0; t < n_tiles_; ++t) prepare_tile(t);
    // tasks with the same activations follow one another
    const int64_t n_tasks = n_panels_ * n_groups();
    for (int64_t task = next_task_++; task < n_tasks; task = next_task_++) {
      multiply(task / n_panels_, task % n_panels_);
    }
  }
}

void PanelProduct::prepare_tile(int64_t tile) const {
  const int64_t n_in = at_.x.n_cols();
  for (int64_t u = 0; u < units_of(n_in); ++u) {
    const void* rows[kByteTileRows];
    for (int64_t i = 0; i < kByteTileRows; ++i) {
      const int64_t row = tile * kByteTileRows + i;
      rows[i] = row < at_.x.shape[0]
                    ? at_.x.at<const char>(row) + row_bytes(at_.x.dtype, u * kGemvUnit)
                    : nullptr;
    }
    kernel_.prepare(rows, at_.x.dtype, std::min(kGemvUnit, n_in - u * kGemvUnit),
                    memory_.tiles[u * n_tiles_ + tile]);
  }
}

/// Computes one task.
void PanelProduct::multiply(int64_t group, int64_t panel) const {
  const int64_t first = panel * kBytePanelRows, first_tile = group * task_tiles_;
  const int64_t n_rows = std::min(kBytePanelRows, at_.w.shape[0] - first);
  const int64_t unit_bytes = row_bytes(at_.w.dtype, kGemvUnit);
  const int64_t w_bytes = row_bytes(at_.w.dtype, at_.w.shape[1]);
  SNAPKV_DCHECK(unit_bytes <= kMostUnitBytes);
  const int thread = omp_get_thread_num();
  char* piece = memory_.pieces + thread * kBytePieceBytes;
  ByteTilesCall call;
  call.piece = piece;
  call.n_tiles = std::min(task_tiles_, n_tiles_ - first_tile);
  call.sums = memory_.sums + thread * task_tiles_ * kByteTileRows * kBytePanelRows;
  call.copy = memory_.copies + thread * kBytePanelRows * kMostUnitBytes;
  // rows that lie side by side
  const int64_t side = interleaved_ != nullptr ? kInterleavedRows : 1;
  call.copy_stride = unit_bytes * side;
  call.next_stride = at_.w.stride[0] * side;
  const char* w = interleaved_ != nullptr ? interleaved_ + first * at_.w.stride[0]
                                          : at_.w.at<const char>(first);
  if (w_bytes < unit_bytes && interleaved_ == nullptr) {
    zero_ends(call.copy, n_rows, unit_bytes, w_bytes);
    for (int64_t r = 0; r < n_rows; ++r) {
      std::memcpy(call.copy + r * unit_bytes, w + r * call.next_stride, w_bytes);
    }
  }
  for (int64_t begin = 0; begin < w_bytes; begin += unit_bytes) {
    const bool copied = begin > 0 || (w_bytes < unit_bytes && interleaved_ == nullptr);
    const char* from = copied ? call.copy : w;
    const int64_t stride = copied ? call.copy_stride : call.next_stride;
    if (interleaved_ != nullptr) {
      const int64_t done = begin / unit_bytes * kGemvUnit;
      kernel_.unpack_interleaved(from, stride, n_rows, std::min(kGemvUnit, at_.w.n_cols() - done),
                                 piece);
    } else {
      kernel_.unpack(from, stride, n_rows, piece);
    }
    call.x = memory_.tiles + begin / unit_bytes * n_tiles_ + first_tile;
    call.adds = begin > 0;
    call.next = w + (begin + unit_bytes) * side;
    call.next_bytes = std::clamp<int64_t>(w_bytes - begin - unit_bytes, 0, unit_bytes) * side;
    call.next_rows = call.next_bytes > 0 ? n_rows / side : 0;
    zero_ends(call.copy, call.next_rows, call.copy_stride, call.next_bytes);
    kernel_.multiply(call);
  }
  const int64_t begin = first_tile * kByteTileRows;
  const int64_t end = std::min(begin + call.n_tiles * kByteTileRows, at_.x.shape[0]);
  for (int64_t row = begin; row < end; ++row) {
    store(row, first, n_rows, call.sums + (row - begin) * kBytePanelRows);
  }
}

/// out[row, first ...] (+)= sums (+ bias). Written as loops that compilers vectorize, since there
/// are as many sums as outputs.
void PanelProduct::store(int64_t row, int64_t first, int64_t n, float* __restrict sums) const {
  if (at_.bias) {
    const float* __restrict bias = static_cast<const float*>(at_.bias.data) + first;
    for (int64_t i = 0; i < n; ++i) sums[i] += bias[i];
  }
  if (at_.out.dtype == DType::bf16) {
    bf16_t* __restrict out = at_.out.at<bf16_t>(row) + first;
    for (int64_t i = 0; i < n; ++i) out[i] = to_bf16(sums[i]);
  } else if (at_.accumulate) {
    float* __restrict out = at_.out.at<float>(row) + first;
    for (int64_t i = 0; i < n; ++i) out[i] += sums[i];
  } else {
    std::copy_n(sums, n, at_.out.at<float>(row) + first);
  }
}

}  // namespace snapkv::cpu
