// SPDX-License-Identifier: MIT
// Memory that the CPU's kernels use while a prompt is read, for memory plans. The sizes are
// computed by the kernels' own code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/byte_products.h"
#include "snapkv/dtype.h"

namespace snapkv {

/// A prompt as kernels see it.
struct KernelShape {
  int64_t n_tokens = 0;  // rows of a KV head once all tokens are read
  int64_t n_chunk = 0;   // tokens per chunk
  int64_t n_embd = 0;
  int64_t n_ff = 0;
  int64_t n_ff_rows = 0;  // tokens that the feed-forward network computes at a time
  int64_t n_expert = 0;   // feed-forward networks that a router chooses among
  int64_t n_head = 0;
  int64_t n_head_kv = 0;
  int64_t head_dim = 0;
  DType kv_type = DType::f16;  // of the rows that attention reads
  DType compute = DType::f32;  // of products
  bool packed = false;         // products use packed weights
  ByteProducts byte_products = ByteProducts::other;
  int n_threads = 0;           // 0: cpu_threads()
  bool selects = false;        // rows are selected, by votes of the window's queries
  bool observes = false;       // all queries vote
  bool shares_budget = false;  // the rows of all heads are ranked together
};

/// The most bytes of PackWorkspace::memory that a layer's products need.
size_t cpu_pack_workspace_bytes(const KernelShape& shape);

/// The most bytes that kernels use at once, including the code that the product library generates.
size_t cpu_kernel_bytes(const KernelShape& shape, int64_t n_window);

}  // namespace snapkv
