// SPDX-License-Identifier: MIT
// The part of decode's attention that a block computes, and where its result goes.
#pragma once

#include <cmath>
#include <cstdint>

#include "backend/cuda/launch.cuh"
#include "backend/cuda/variant.cuh"
#include "backend/ops.h"

namespace snapkv::cuda::decode {

constexpr int kSplitStep = 64;  // rows of a split are a multiple of it: a tile for each of 4 warps

struct DecodeArguments {
  const float* q;         // [n_seq, n_head, head_dim]
  const HeadRows* heads;  // [n_seq, n_head_kv]
  float* out;             // [n_seq, n_head, value_dim]
  float* sums;            // [n_seq * n_head, n_splits, value_dim], of exp2(score - max) v
  float2* ranges;         // [n_seq * n_head, n_splits]: max, sum of exp2(score - max)
  int n_head_kv, n_group, head_dim, n_passes, split_rows, n_splits;
  int value_dim, v_step;  // head_dim, except in the plain kernel; bytes from a row of v to the next
  float scale;  // makes scores in units of log 2
  float unit;   // how much a probability of 1 adds to a sum
  DeviceVariant variant;

  /// The sink of query head `head`, one of n_seq * n_head.
  __device__ __forceinline__ float sink(int64_t head) const {
    return variant.sink(static_cast<int>(head % (n_head_kv * n_group)));
  }
};

/// A block's work: some query heads of a group, some rows of their KV head.
struct Work {
  HeadRows rows;
  int64_t head;  // first query head, one of n_seq * n_head
  int n_queries;
  int begin, end;  // rows; nothing to do if end <= begin
};

template <int kGroup>
__device__ __forceinline__ Work block_work(const DecodeArguments& a) {
  const int head_kv = blockIdx.y / a.n_passes, first = blockIdx.y % a.n_passes * kGroup;
  const int64_t pair = static_cast<int64_t>(blockIdx.z) * a.n_head_kv + head_kv;
  Work w;
  w.rows = a.heads[pair];
  w.head = pair * a.n_group + first;
  w.n_queries = min(kGroup, a.n_group - first);
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * a.split_rows;
  w.begin = static_cast<int>(min(begin, static_cast<int64_t>(w.rows.n_kv)));
  w.end = static_cast<int>(min(begin + a.split_rows, static_cast<int64_t>(w.rows.n_kv)));
  return w;
}

/// The value that is subtracted from scores: their maximum or, if all are -inf, 0, so that the
/// result here is 0 and not NaN (0 / 0 at the end).
__device__ __forceinline__ float reference(float max) { return max == -INFINITY ? 0.0f : max; }

__device__ __forceinline__ void store_result(const DecodeArguments& a, int64_t head, int d,
                                             float value, float max, float sum) {
  if (a.n_splits == 1) {
    const float factor = with_sink(a.sink(head), max, sum, a.unit);
    a.out[head * a.value_dim + d] = value * factor / sum;
    return;
  }
  const int64_t at = head * a.n_splits + blockIdx.x;
  a.sums[at * a.value_dim + d] = value;
  if (d == 0) a.ranges[at] = make_float2(max, sum);
}

}  // namespace snapkv::cuda::decode
