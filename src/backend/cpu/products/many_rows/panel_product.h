// SPDX-License-Identifier: MIT
// PanelProduct: one project_packed() call with a weight of a block type, multiplied in 8 bits
// directly from the file's type: nothing is packed.
#pragma once

#include <atomic>

#include "backend/cpu/cpu_context.h"
#include "backend/cpu/products/many_rows/byte_panels.h"
#include "base/tensor.h"

namespace snapkv::cpu {

/// Bytes of scratch memory for a product of n rows of n_in values.
size_t panel_product_workspace(const CpuContext& ctx, int64_t n, int64_t n_in);

/// out [n, n_out] (+)= x [n, n_in] w^T (+ bias [n_out]); x and out are dense.
struct PanelOperands {
  Tensor x;  // f32 or bf16
  Tensor w;  // packed_products_in_bytes()
  const char* interleaved = nullptr;  // a copy of w, if it is known
  Tensor bias;
  Tensor out;               // f32 or bf16
  bool accumulate = false;  // out is f32
};

class PanelProduct {
 public:
  PanelProduct(const CpuContext& ctx, const PanelOperands& operands);
  void run();

 private:
  /// Pieces of this thread's scratch memory.
  struct Memory {
    ByteTile* tiles;  // [n_units, n_tiles]
    char* pieces;     // [n_threads, kBytePieceBytes]
    char* copies;     // [n_threads, kBytePanelRows, bytes of kGemvUnit weights]
    float* sums;      // [n_threads, rows of a task, kBytePanelRows]
  };
  friend size_t panel_product_workspace(const CpuContext& ctx, int64_t n, int64_t n_in);
  static size_t cut_memory(const CpuContext& ctx, int64_t n, int64_t n_in, char* begin, Memory& m);

  int64_t n_groups() const { return (n_tiles_ + task_tiles_ - 1) / task_tiles_; }
  void prepare_tile(int64_t tile) const;
  void multiply(int64_t group, int64_t panel) const;
  void store(int64_t row, int64_t first, int64_t n, float* sums) const;

  const CpuContext& ctx_;
  const PanelOperands& at_;
  const BytePanelKernel kernel_;
  const char* const interleaved_;  // a copy of w, or null
  const int64_t n_tiles_, n_panels_;
  int64_t task_tiles_;  // tiles of activations
  Memory memory_{};
  std::atomic<int64_t> next_task_ = 0;
};

}  // namespace snapkv::cpu
