// SPDX-License-Identifier: MIT
// Decode attention over q8_0 rows with AVX-512 VNNI: products of levels with queries, and with
// probabilities, that are rounded to 16 bits and split into bytes, so that sums are of integers.
// Called by decode_chunk.cpp; attention_decode.cpp prepares the queries.
#pragma once

#include <cstdint>

#include "snapkv/dtype.h"

namespace snapkv::cpu {

/// A query for 8 blocks of 32 levels, in the order of VnniUnit: its own blocks, again and again.
/// Value i of a block is d * (256 * high[i] + low[i]), with d = max|q| of the block / 32512: what
/// is lost is at most 2^-16 of the block's largest value.
struct alignas(64) ScoreQuery {
  int8_t high[4][64];
  int8_t low[4][64];
  int32_t negative_sums[16];  // of each lane's values / d, times 128, which levels are too large by
  float d[16];                // of each lane's block
};

/// Whether the functions below are there for these rows and this processor.
bool decodes_with_vnni(DType rows, int64_t head_dim);

/// For one query head, [head_dim].
void prepare_score_query(const float* q, int head_dim, ScoreQuery& query);

/// scores[h, r] = query h . row r, for n_group queries and the `n` rows of keys at `k`, at most
/// kBlockRows. scores: [n_group, kScoreStride], of which rows up to n + 15 are written. Asks for
/// the memory of as many rows at `next`.
void score_block_vnni(const ScoreQuery* queries, int n_group, const char* k, int n, int head_dim,
                      const char* next, float* scores);

/// acc[h, i] += sum_r p[h, r] v[r, i] for the `n` rows of values at `v`, at most kBlockRows. p:
/// [n_group, kScoreStride], not negative; set to 0 behind row n. A probability times the row's
/// scale is rounded to a 65280th of the largest such product in these rows. Asks for the memory of
/// as many rows at `next`. Returns false, with nothing done, where a scale is negative or not
/// finite: rows of finite values never have such scales.
bool add_values_vnni(float* p, int n_group, const char* v, int n, int head_dim, const char* next,
                     float* acc);

}  // namespace snapkv::cpu
