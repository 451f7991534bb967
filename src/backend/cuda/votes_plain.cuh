// SPDX-License-Identifier: MIT
// Arguments of the kernels in votes.cu, how these share the keys, and the kernels for f32 keys.
#pragma once

#include "backend/cuda/tile.cuh"
#include "backend/cuda/variant.cuh"

namespace snapkv::cuda {

constexpr int kUnitKeys = 32;  // keys that a warp works on at once

struct Units {
  int begin, end;
};

/// Queries of a KV head are numbered by rows: row r is query r % padded_window of query head r /
/// padded_window of the group. Queries from n_window on do not exist and do not vote.
struct VoteArguments {
  const float* q;  // [n_window, n_head, head_dim]
  const void* k;   // [n_head_kv, capacity, head_dim], strides in values
  int64_t k_head, k_row;
  const int32_t* rows;  // [n_head_kv]: n_rows
  float* votes;         // [n_head_kv, votes_stride]
  int64_t votes_stride;
  float2* states;  // [n_head_kv, n_padded_rows, n_ranges] maximum and sum
  float2* norms;   // [n_head_kv, n_padded_rows] maximum and 1 / sum over all ranges
  int n_window, padded_window, n_head_kv, n_group, head_dim, n_ranges;
  float scale_log2;  // scores are in units of log2
  bool window_max, group_max, whole, aligned;
  DeviceVariant variant;

  __host__ __device__ int n_padded_rows() const { return n_group * padded_window; }
  __host__ __device__ int n_row_tiles() const { return n_padded_rows() / 16; }
  /// Number of columns that get votes.
  __host__ __device__ int n_cols(int n_rows) const { return whole ? n_rows : n_rows - n_window; }
  __device__ int last_seen(int n_rows, int row) const {
    return n_rows - n_window + row % padded_window;
  }
  __device__ int first_seen(int n_rows, int row) const {
    return variant.first_seen(last_seen(n_rows, row));
  }
  /// Whether no query sees any key of the unit, because all are before the first query's window.
  __device__ bool hidden(int unit, int n_rows) const {
    return (unit + 1) * kUnitKeys <= first_seen(n_rows, 0);
  }
  __device__ float sink(int g, int row) const {
    return variant.sink(g * n_group + row / padded_window);
  }
  __device__ const float* query(int g, int row) const {
    const int i = row % padded_window, h = g * n_group + row / padded_window;
    if (i >= n_window) return nullptr;
    return q + (int64_t{i} * n_head_kv * n_group + h) * head_dim;
  }
  template <typename T>
  __device__ HeadView<T> keys(int g) const {
    return {static_cast<const T*>(k) + g * k_head, k_row, rows[g], head_dim, aligned};
  }
  /// The keys of a range, in units of kUnitKeys keys.
  __device__ Units units_of_range(int range, int n_rows) const {
    const int64_t n_units = div_up(n_rows, kUnitKeys);
    return {static_cast<int>(n_units * range / n_ranges),
            static_cast<int>(n_units * (range + 1) / n_ranges)};
  }
  __device__ int64_t state_at(int g, int row, int range) const {
    return (int64_t{g} * n_padded_rows() + row) * n_ranges + range;
  }
  /// Probabilities are not negative, so all reductions start from 0.
  __device__ float add_query(float sum, float probability) const {
    return window_max ? fmaxf(sum, probability) : sum + probability;
  }
  __device__ float add_head(float sum, float head) const {
    return group_max ? fmaxf(sum, head) : sum + head;
  }
  __device__ float reduced(float sum) const {
    return group_max ? sum : sum / static_cast<float>(n_group);
  }
};

// ---------------------------------------------------------------- f32

constexpr int kPlainStateRows = 256;  // rows whose state a block keeps
constexpr int kPlainAtOnce = 4;       // rows that share a key's values

/// The distance of keys in shared memory is odd, so that the same value of 32 keys lies in 32
/// banks.
__host__ __device__ constexpr int plain_vote_pitch(int head_dim) { return head_dim | 1; }
constexpr size_t plain_vote_shared_bytes(int head_dim) {
  return sizeof(float) * kUnitKeys * plain_vote_pitch(head_dim);
}

/// Loads the unit's keys as f32, with one warp.
template <typename T>
__device__ __forceinline__ void load_plain_keys(const HeadView<T>& head, int unit, float* keys) {
  const int pitch = plain_vote_pitch(head.head_dim);
  __syncwarp();  // earlier keys are no longer read
  for (int at = threadIdx.x; at < kUnitKeys * pitch; at += kWarpSize) {
    const int row = unit * kUnitKeys + at / pitch, col = at % pitch;
    const bool exists = row < head.n_rows && col < head.head_dim;
    keys[at] = exists ? to_float(head.data[row * head.stride + col]) : 0.0f;
  }
  __syncwarp();
}

/// Scores of rows first_row ... with the lane's key, in units of log2; -inf if not seen.
__device__ __forceinline__ void plain_scores(const VoteArguments& a, int g, int first_row, int unit,
                                             int n_rows, const float* keys,
                                             float (&s)[kPlainAtOnce]) {
  const float* q[kPlainAtOnce];
  for (int r = 0; r < kPlainAtOnce; ++r) {
    q[r] = a.query(g, first_row + r);
    if (q[r] == nullptr) q[r] = a.q;  // any query will do: its score is not used
    s[r] = 0.0f;
  }
  const float* key = keys + threadIdx.x * plain_vote_pitch(a.head_dim);
#pragma unroll 4
  for (int d = 0; d < a.head_dim; ++d) {
#pragma unroll
    for (int r = 0; r < kPlainAtOnce; ++r) s[r] += q[r][d] * key[d];
  }
  const int col = unit * kUnitKeys + static_cast<int>(threadIdx.x);
#pragma unroll
  for (int r = 0; r < kPlainAtOnce; ++r) {
    const bool seen = a.first_seen(n_rows, first_row + r) <= col &&
                      col <= a.last_seen(n_rows, first_row + r) && col < n_rows;
    s[r] = seen ? a.variant.capped(s[r] * a.scale_log2) : -INFINITY;
  }
}

// Pass 1. One warp per (range of keys, KV head, kPlainStateRows rows).
template <typename T>
__global__ void __launch_bounds__(kWarpSize) plain_vote_states_kernel(const VoteArguments a) {
  __shared__ float2 states[kPlainStateRows];
  float* const keys = reinterpret_cast<float*>(dynamic_shared());
  const int range = blockIdx.x, g = blockIdx.y, lane = threadIdx.x;
  const int first_row = blockIdx.z * kPlainStateRows;
  const int n_block_rows = min(kPlainStateRows, a.n_padded_rows() - first_row);
  for (int i = lane; i < n_block_rows; i += kWarpSize) states[i] = make_float2(-INFINITY, 0.0f);
  const HeadView<T> head = a.keys<T>(g);
  const Units units = a.units_of_range(range, head.n_rows);
  for (int unit = units.begin; unit < units.end; ++unit) {
    if (a.hidden(unit, head.n_rows)) continue;
    load_plain_keys(head, unit, keys);
    for (int i = 0; i < n_block_rows; i += kPlainAtOnce) {
      float s[kPlainAtOnce];
      plain_scores(a, g, first_row + i, unit, head.n_rows, keys, s);
      for (int r = 0; r < kPlainAtOnce; ++r) {
        const float2 old = states[i + r];
        const float max = fmaxf(old.x, warp_max(s[r]));
        const float base = max == -INFINITY ? 0.0f : max;
        const float sum = old.y * exp2f(old.x - base) + warp_sum(exp2f(s[r] - base));
        __syncwarp();  // all lanes have read the old state
        if (lane == 0) states[i + r] = make_float2(max, sum);
      }
    }
  }
  __syncwarp();
  for (int i = lane; i < n_block_rows; i += kWarpSize) {
    a.states[a.state_at(g, first_row + i, range)] = states[i];
  }
}

// Pass 2. One warp per (32 keys, KV head), one lane per key.
template <typename T>
__global__ void __launch_bounds__(kWarpSize) plain_votes_kernel(const VoteArguments a) {
  float* const keys = reinterpret_cast<float*>(dynamic_shared());
  const int unit = blockIdx.x, g = blockIdx.y;
  const HeadView<T> head = a.keys<T>(g);
  const int n_cols = a.n_cols(head.n_rows);
  if (unit * kUnitKeys >= n_cols) return;
  load_plain_keys(head, unit, keys);
  float votes = 0.0f;
  for (int h = 0; h < a.n_group; ++h) {
    float sum = 0.0f;
    for (int i = 0; i < a.n_window; i += kPlainAtOnce) {
      const int row = h * a.padded_window + i;
      float s[kPlainAtOnce];
      plain_scores(a, g, row, unit, head.n_rows, keys, s);
      for (int r = 0; r < kPlainAtOnce; ++r) {
        const float2 norm = a.norms[g * a.n_padded_rows() + row + r];
        sum = a.add_query(sum, exp2f(s[r] - norm.x) * norm.y);
      }
    }
    votes = a.add_head(votes, sum);
  }
  const int col = unit * kUnitKeys + static_cast<int>(threadIdx.x);
  if (col < n_cols) a.votes[g * a.votes_stride + col] = a.reduced(votes);
}

}  // namespace snapkv::cuda
