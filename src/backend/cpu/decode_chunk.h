// SPDX-License-Identifier: MIT
// The inner step of decode attention: one query of each head of a group against a chunk of rows.
// Called by attention_decode.cpp; the SIMD code is in decode_chunk.cpp.
#pragma once

#include "backend/cpu/decode_vnni.h"
#include "backend/cpu/online_softmax.h"
#include "snapkv/dtype.h"

namespace snapkv::cpu {

/// Rows whose scores are kept at once: their K and V (8 KiB each for f16 and head_dim 64) stay in
/// the L1 cache between the passes over groups of query heads, with the next ones on their way.
constexpr int kBlockRows = 64;
constexpr int kScoreStride = kBlockRows + 16;  // room for stores of 4 that begin at the last rows

/// One chunk of rows of one KV head, and the group's query heads.
struct DecodeChunk {
  const char* k;  // [n_rows, head_dim] of a cache dtype
  const char* v;
  DType dtype;
  int n_rows;
  int head_dim;
  int n_group;
  float softcap;              // AttentionVariant::softcap
  const float* q;             // [n_group, head_dim], scaled to log2 units
  const ScoreQuery* queries;  // the same for decodes_with_vnni(); null where that is not so
  float* scores;              // [n_group, kScoreStride] scratch
  OnlineSoftmax* state;       // [n_group] result
  float* acc;                 // [n_group, head_dim] result
};

/// Fills state and acc from the chunk's rows. f32 arithmetic, q8_0 widened in registers; where
/// there are `queries`, the integers of decode_vnni.h. Each row is loaded once for all heads (once
/// per pass over four of them where the group is larger, then from the L1 cache).
void decode_chunk(const DecodeChunk& chunk);

}  // namespace snapkv::cpu
