// SPDX-License-Identifier: MIT
// Decode attention over q8_0 rows with AVX-512 VNNI. Queries and probabilities are rounded to 16
// bits and split into bytes, so that their products with levels are summed as integers.
#pragma once

#include <cstdint>

#include "snapkv/dtype.h"

namespace snapkv::cpu {

/// A query for 8 blocks of 32 levels in the order of VnniUnit: the query's blocks, repeated. Value
/// i of a block is d * (256 * high[i] + low[i]), with d = max|q| of the block / 32512; the error is
/// at most 2^-16 of the block's largest value.
struct alignas(64) ScoreQuery {
  int8_t high[4][64];
  int8_t low[4][64];
  int32_t negative_sums[16];  // per lane: sum of values / d, times -128, the levels' surplus
  float d[16];                // of each lane's block
};

/// Whether the functions below support these rows on this processor.
bool decodes_with_vnni(DType rows, int64_t head_dim);

/// Prepares the query of one head, [head_dim].
void prepare_score_query(const float* q, int head_dim, ScoreQuery& query);

/// scores[h, r] = query h . row r, for n_group queries and the `n` rows of keys at `k`, at most
/// kBlockRows. scores: [n_group, kScoreStride]; columns up to n + 15 are written. Prefetches as
/// many rows at `next`.
void score_block_vnni(const ScoreQuery* queries, int n_group, const char* k, int n, int head_dim,
                      const char* next, float* scores);

/// acc[h, i] += sum_r p[h, r] v[r, i] for the `n` rows of values at `v`, at most kBlockRows. p:
/// [n_group, kScoreStride], not negative; set to 0 after row n. A probability times the row's scale
/// is rounded to 1/65280 of the largest such product in these rows. Prefetches as many rows at
/// `next`. If a scale is negative or not finite, which rows of finite values never have, returns
/// false and does nothing.
bool add_values_vnni(float* p, int n_group, const char* v, int n, int head_dim, const char* next,
                     float* acc);

}  // namespace snapkv::cpu
