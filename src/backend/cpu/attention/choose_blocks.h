// SPDX-License-Identifier: MIT
// choose_blocks(): which blocks of keys a block of queries attends to (SparseAttention in ops.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/cpu_context.h"
#include "backend/cpu/target/scratch.h"
#include "backend/ops.h"

namespace snapkv::cpu {

/// A block of queries of one KV head.
struct QueryBlock {
  int64_t head = 0;            // of keys
  int64_t begin = 0, end = 0;  // queries of the chunk
  int64_t n_rows = 0;          // that the last one sees
};

/// Memory of a thread for choose_blocks().
struct ChoiceSpace {
  /// Of at most n_blocks blocks of keys. Without memory the cutter only adds up.
  ChoiceSpace(const PrefillAttention& a, int64_t n_blocks, ScratchCutter& cutter);
  float* q;        // [kBlock padded, head_dim]
  float* means;    // [n_blocks, head_dim], of the rows that the queries see
  float* packed;   // the same, packed
  float* scores;   // [kBlock padded, stride]
  float* mass;     // [n_group, stride]
  float* best;     // [n_blocks]
  int32_t* order;  // [n_blocks]
  int64_t stride;
};

constexpr int64_t n_blocks_of(int64_t n_rows) {
  return (n_rows + SparseAttention::kBlock - 1) / SparseAttention::kBlock;
}

/// means[b, :] = the mean of the block's rows, of those before n_rows. [n_blocks, head_dim]
void mean_keys(const Tensor& k, int64_t head, int64_t b, int64_t n_rows, float* mean);

/// Writes the numbers of the chosen blocks, ascending, and returns how many. `means`: of whole
/// blocks, [n_blocks, head_dim].
int64_t choose_blocks(const PrefillAttention& a, const QueryBlock& queries, const float* means,
                      const ChoiceSpace& space, int32_t* chosen);

}  // namespace snapkv::cpu
