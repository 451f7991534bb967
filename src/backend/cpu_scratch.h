// SPDX-License-Identifier: MIT
// What the CPU's kernels take for themselves while a prompt is read, for memory plans
// (engine/memory_plan.cpp). The sizes come from the kernels' own arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/byte_products.h"
#include "snapkv/dtype.h"

namespace snapkv {

/// A prompt as kernels see it.
struct KernelShape {
  int64_t n_tokens = 0;  // rows of a KV head when all have been read
  int64_t n_chunk = 0;   // tokens computed at a time
  int64_t n_embd = 0;
  int64_t n_ff = 0;
  int64_t n_ff_rows = 0;  // tokens that the feed-forward network computes at a time
  int64_t n_head = 0;
  int64_t n_head_kv = 0;
  int64_t head_dim = 0;
  DType kv_type = DType::f16;  // of the rows that attention reads
  DType compute = DType::f32;  // of products
  bool packed = false;         // products are of packed weights
  ByteProducts byte_products = ByteProducts::other;
  int n_threads = 0;           // 0: cpu_threads()
  bool selects = false;        // rows are chosen: the window's queries vote
  bool observes = false;       // all queries do
  bool shares_budget = false;  // the rows of all heads are ranked together
};

/// Most bytes of PackWorkspace::memory that a layer's products take.
size_t cpu_pack_workspace_bytes(const KernelShape& shape);

/// Most bytes that kernels have in use at once, with the code that the product library makes.
size_t cpu_kernel_bytes(const KernelShape& shape, int64_t n_window);

}  // namespace snapkv
