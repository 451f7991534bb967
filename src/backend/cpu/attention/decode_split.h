// SPDX-License-Identifier: MIT
// The inner step of decode attention: one query of each head of a group against a split of rows.
// The SIMD code is in decode_split.cpp.
#pragma once

#include "backend/cpu/attention/decode_vnni.h"
#include "backend/cpu/attention/online_softmax.h"
#include "snapkv/dtype.h"

namespace snapkv::cpu {

/// Rows whose scores are kept at once. Their K and V (8 KiB each for f16 and head_dim 64) stay in
/// the L1 cache between the passes over groups of query heads, while the next rows are prefetched.
constexpr int kBlockRows = 64;
constexpr int kScoreStride = kBlockRows + 16;  // for stores of 4 that begin at the last rows

/// One split of rows of one KV head, and the group's query heads.
struct DecodeSplit {
  const char* k;          // [n_rows, head_dim] of a cache dtype
  const char* v;          // [n_rows, value_dim]
  int64_t v_step;         // bytes from a row of v to the next one
  const int32_t* chosen;  // [n_rows] numbers of the rows to read; null: 0, 1, ...
  DType dtype;
  int n_rows;
  int head_dim, value_dim;
  int n_group;
  float softcap;              // AttentionVariant::softcap
  const float* q;             // [n_group, head_dim], scaled to log2 units
  const ScoreQuery* queries;  // the same for decodes_with_vnni(); otherwise null
  float* scores;              // [n_group, kScoreStride] scratch
  OnlineSoftmax* state;       // [n_group] result
  float* acc;                 // [n_group, value_dim] result
};

/// Computes state and acc from the split's rows, in f32, with q8_0 widened in registers, or if
/// there are `queries` with the integers of decode_vnni.h. Each row is loaded once for all heads
/// (for larger groups once per pass over four of them, then from the L1 cache).
void decode_split(const DecodeSplit& split);

}  // namespace snapkv::cpu
