// SPDX-License-Identifier: MIT
// SnapKV's vote (WindowVotes in ops.h): how much probability the window's queries give each row.
//
// Two passes over the keys. The second computes the scores again, so nothing of size [W, n_rows] is
// ever stored:
//   1. maximum and sum of 2^(s - maximum) of every (head, query) row over a range of keys; another
//      kernel merges the ranges
//   2. probabilities, summed over the window's queries (or their largest), then over the group's
//      heads
// f16 and bf16 keys: tensor cores. Queries are split into 2 (f16) or 3 (bf16) parts of the keys'
// type, each row scaled by a power of 2, so that products are as exact as in f32: votes decide
// ranks. A warp keeps 32 keys in registers, as 16-byte loads leave them. (Any 16 values of a row
// may meet in one product, so the product takes these.) It goes over the queries, which another
// kernel has stored as fragments and which stay in L1. Warps never wait for each other; every sum
// has a fixed order.
//
// Floor, per layer: 2 passes over K (0.11 ms at 128k rows of 8 heads x 128, 4.8 TB/s), 4 n_parts
// n_head W n_rows head_dim FLOP (0.3 ms at 128k, W = 32, 32 heads); prefill attention of such a
// layer needs 0.4 s or more. Limited by L1: 128 bytes of queries per product of 16 x 8 x 16.
//
// f32 keys, and head_dim > 256: votes_plain.cuh.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/votes_plain.cuh"

namespace snapkv::cuda {
namespace {

// ---------------------------------------------------------------- queries as fragments

constexpr int kUnitTiles = kUnitKeys / 8;

/// How many numbers of type T add up to an f32.
template <typename T>
constexpr int kParts = std::is_same_v<T, __half> ? 2 : 3;

/// Bound of a row's power of 2: it stays finite for rows of infinities and denormals.
constexpr int kMaxExponent = 100;

/// Offset of the fragments of a row tile: products of 16 values with each part of the query, each a
/// uint4 per lane: [n_head_kv, n_row_tiles, kDim / 16, kParts, kWarpSize].
template <typename T, int kDim>
__device__ __forceinline__ int64_t fragment_at(const VoteArguments& a, int g, int row_tile) {
  return int64_t{g * a.n_row_tiles() + row_tile} * (kDim / 16 * kParts<T> * kWarpSize);
}

// One warp per (row tile, KV head). Lane (g, t) = (lane / 4, lane % 4) has rows g and g + 8;
// product 2c + u takes their values 32c + 8t + 4u + 0..3: see scores().
template <typename T, int kDim>
__global__ void __launch_bounds__(kWarpSize)
    split_queries_kernel(const VoteArguments a, uint4* fragments, float* row_scale) {
  const int row_tile = blockIdx.x, g = blockIdx.y, lane = threadIdx.x;
  const float* q[2];
  float factor[2];
  for (int half = 0; half < 2; ++half) {
    const int row = 16 * row_tile + 8 * half + lane / 4;
    q[half] = a.query(g, row);
    float largest = 0.0f;
    if (q[half] != nullptr) {
      for (int d = lane % 4; d < a.head_dim; d += 4) largest = fmaxf(largest, fabsf(q[half][d]));
    }
    largest = quad_max(largest);
    // the largest value becomes 2^11 to 2^12: f16's own 11 bits, and as many below for its parts
    const int exponent = largest > 0.0f ? 11 - ilogbf(largest) : 0;
    factor[half] = ldexpf(1.0f, min(kMaxExponent, max(-kMaxExponent, exponent)));
    if (lane % 4 == 0) {
      row_scale[g * a.n_padded_rows() + row] = a.scale_log2 / factor[half];
    }
  }
  uint4* out = fragments + fragment_at<T, kDim>(a, g, row_tile) + lane;
  for (int product = 0; product < kDim / 16; ++product) {
    float rest[2][4];
    for (int half = 0; half < 2; ++half) {
      for (int i = 0; i < 4; ++i) {
        const int d = product / 2 * 32 + lane % 4 * 8 + product % 2 * 4 + i;
        const bool exists = q[half] != nullptr && d < a.head_dim;
        rest[half][i] = exists ? q[half][d] * factor[half] : 0.0f;
      }
    }
    for (int part = 0; part < kParts<T>; ++part, out += kWarpSize) {
      *out = make_uint4(pack<T>(rest[0][0], rest[0][1]), pack<T>(rest[1][0], rest[1][1]),
                        pack<T>(rest[0][2], rest[0][3]), pack<T>(rest[1][2], rest[1][3]));
      for (int half = 0; half < 2; ++half) {
        for (int i = 0; i < 4; ++i) rest[half][i] -= to_float(from_float<T>(rest[half][i]));
      }
    }
  }
}

// ---------------------------------------------------------------- scores

/// 32 keys of a warp: lane (g, t) has values 32c + 8t + 0..7 of rows 8n + g.
template <int kDim>
using Keys = uint4[kUnitTiles][kDim / 32];

template <int kDim, typename T>
__device__ __forceinline__ void load_keys(const HeadView<T>& head, int unit, Keys<kDim>& keys) {
  const int lane = threadIdx.x % kWarpSize;
#pragma unroll
  for (int n = 0; n < kUnitTiles; ++n) {
#pragma unroll
    for (int c = 0; c < kDim / 32; ++c) {
      keys[n][c] = read_chunk(head, unit * kUnitKeys + 8 * n + lane / 4, 32 * c + lane % 4 * 8);
    }
  }
}

/// s = q k^T for a row tile and the keys, in units of log2; -inf where a query does not see a key.
template <typename T, int kDim>
__device__ __forceinline__ void scores(const VoteArguments& a, int g, int row_tile, int unit,
                                       int n_rows, const uint4* fragments, const float* row_scale,
                                       const Keys<kDim>& keys, float (&s)[kUnitTiles][4]) {
  const int lane = threadIdx.x % kWarpSize;
  const uint4* q = fragments + fragment_at<T, kDim>(a, g, row_tile) + lane;
#pragma unroll
  for (int n = 0; n < kUnitTiles; ++n) s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0.0f;
#pragma unroll
  for (int product = 0; product < kDim / 16; ++product) {
#pragma unroll
    for (int part = 0; part < kParts<T>; ++part, q += kWarpSize) {
      const uint4 x = __ldg(q);
      const uint32_t left[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
      for (int n = 0; n < kUnitTiles; ++n) {
        const uint4& y = keys[n][product / 2];
        const uint32_t right[2] = {product % 2 == 0 ? y.x : y.z, product % 2 == 0 ? y.y : y.w};
        ptx::mma_16x8x16<T>(s[n], left, right, s[n]);
      }
    }
  }
  const int first = unit * kUnitKeys + lane % 4 * 2;
  const bool all_seen = (unit + 1) * kUnitKeys <= n_rows - a.n_window + 1 &&
                        unit * kUnitKeys >= a.variant.first_seen(n_rows - 1);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = 16 * row_tile + 8 * half + lane / 4;
    const float factor = row_scale[g * a.n_padded_rows() + row];
    const int last_seen = a.last_seen(n_rows, row) - first;
    const int first_seen = a.first_seen(n_rows, row) - first;
#pragma unroll
    for (int n = 0; n < kUnitTiles; ++n) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& score = s[n][2 * half + e];
        const bool seen = all_seen || (first_seen <= 8 * n + e && 8 * n + e <= last_seen);
        score = seen ? a.variant.capped(score * factor) : -INFINITY;
      }
    }
  }
}

// ---------------------------------------------------------------- passes

constexpr int kVoteWarps = 4;
constexpr int kStateTiles = 8;  // row tiles whose state a block keeps

// Pass 1. One warp per (range of keys, KV head, kStateTiles row tiles). Each lane keeps the state
// of its own columns in shared memory; the 4 lanes of a row merge theirs at the end.
template <typename T, int kDim>
__global__ void __launch_bounds__(kVoteWarps* kWarpSize)
    vote_states_kernel(const VoteArguments a, const uint4* fragments, const float* row_scale) {
  __shared__ float2 all_states[kVoteWarps][kStateTiles][2][kWarpSize];
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int range = blockIdx.x * kVoteWarps + warp, g = blockIdx.y;
  if (range >= a.n_ranges) return;
  const int first_tile = blockIdx.z * kStateTiles;
  const int n_tiles = min(kStateTiles, a.n_row_tiles() - first_tile);
  auto& states = all_states[warp];
  for (int i = 0; i < n_tiles; ++i) {
    states[i][0][lane] = states[i][1][lane] = make_float2(-INFINITY, 0.0f);
  }
  const HeadView<T> head = a.keys<T>(g);
  const Units units = a.units_of_range(range, head.n_rows);
  for (int unit = units.begin; unit < units.end; ++unit) {
    if (a.hidden(unit, head.n_rows)) continue;
    Keys<kDim> keys;
    load_keys<kDim>(head, unit, keys);
    for (int i = 0; i < n_tiles; ++i) {
      float s[kUnitTiles][4];
      scores<T, kDim>(a, g, first_tile + i, unit, head.n_rows, fragments, row_scale, keys, s);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float2& state = states[i][half][lane];
        float max = state.x;
#pragma unroll
        for (int n = 0; n < kUnitTiles; ++n) {
          max = fmaxf(max, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
        }
        const float base = max == -INFINITY ? 0.0f : max;
        float sum = state.y * ptx::exp2_approx(state.x - base);
#pragma unroll
        for (int n = 0; n < kUnitTiles; ++n) {
          sum += ptx::exp2_approx(s[n][2 * half] - base);
          sum += ptx::exp2_approx(s[n][2 * half + 1] - base);
        }
        state = make_float2(max, sum);
      }
    }
  }
  for (int i = 0; i < n_tiles; ++i) {
    for (int half = 0; half < 2; ++half) {
      const float2 own = states[i][half][lane];
      const float max = quad_max(own.x);
      const float base = max == -INFINITY ? 0.0f : max;
      const float sum = quad_sum(own.y * ptx::exp2_approx(own.x - base));
      const int row = 16 * (first_tile + i) + 8 * half + lane / 4;
      if (lane % 4 == 0) a.states[a.state_at(g, row, range)] = make_float2(max, sum);
    }
  }
}

// Computes a row's norms from its states; one warp per row.
__global__ void merge_vote_states_kernel(const VoteArguments a) {
  const int lane = threadIdx.x % kWarpSize;
  const int64_t row = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarpSize;  // any head
  if (row >= int64_t{a.n_head_kv} * a.n_padded_rows()) return;
  const float2* states = a.states + row * a.n_ranges;
  const auto g = static_cast<int>(row / a.n_padded_rows());
  const float sink = a.sink(g, static_cast<int>(row % a.n_padded_rows()));
  float max = sink, sum = 0.0f;
  for (int i = lane; i < a.n_ranges; i += kWarpSize) max = fmaxf(max, states[i].x);
  max = warp_max(max);
  for (int i = lane; i < a.n_ranges; i += kWarpSize) {
    sum += states[i].y * exp2f(states[i].x - max);
  }
  sum = warp_sum(sum);
  if (sink != -INFINITY) sum += exp2f(sink - max);
  const bool exists = row % a.padded_window < a.n_window;
  // every query sees at least one key, so its sum is 1 or more
  if (lane == 0) a.norms[row] = exists ? make_float2(max, 1.0f / sum) : make_float2(INFINITY, 0.0f);
}

// Pass 2. One warp per (32 keys, KV head).
template <typename T, int kDim>
__global__ void __launch_bounds__(kVoteWarps* kWarpSize)
    votes_kernel(const VoteArguments a, const uint4* fragments, const float* row_scale) {
  const int lane = threadIdx.x % kWarpSize, g = blockIdx.y;
  const int unit = blockIdx.x * kVoteWarps + threadIdx.x / kWarpSize;
  const HeadView<T> head = a.keys<T>(g);
  const int n_cols = a.n_cols(head.n_rows);
  if (unit * kUnitKeys >= n_cols) return;
  Keys<kDim> keys;
  load_keys<kDim>(head, unit, keys);
  const int head_tiles = a.padded_window / 16;
  float votes[kUnitTiles][2] = {};
  for (int h = 0; h < a.n_group; ++h) {
    float sums[kUnitTiles][2] = {};
    for (int i = 0; i < head_tiles; ++i) {
      const int row_tile = h * head_tiles + i;
      float s[kUnitTiles][4];
      scores<T, kDim>(a, g, row_tile, unit, head.n_rows, fragments, row_scale, keys, s);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = 16 * row_tile + 8 * half + lane / 4;
        const float2 norm = a.norms[g * a.n_padded_rows() + row];
#pragma unroll
        for (int n = 0; n < kUnitTiles; ++n) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const float p = ptx::exp2_approx(s[n][2 * half + e] - norm.x) * norm.y;
            sums[n][e] = a.add_query(sums[n][e], p);
          }
        }
      }
    }
#pragma unroll
    for (int n = 0; n < kUnitTiles; ++n) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        for (int bits = 4; bits < kWarpSize; bits *= 2) {
          sums[n][e] = a.add_query(sums[n][e], __shfl_xor_sync(kAllLanes, sums[n][e], bits));
        }
        votes[n][e] = a.add_head(votes[n][e], sums[n][e]);
      }
    }
  }
  if (lane >= 4) return;
#pragma unroll
  for (int n = 0; n < kUnitTiles; ++n) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int col = unit * kUnitKeys + 8 * n + 2 * lane + e;
      if (col < n_cols) a.votes[g * a.votes_stride + col] = a.reduced(votes[n][e]);
    }
  }
}

// ---------------------------------------------------------------- launches

/// Divides scratch memory: the states and norms of `a`, then `n_more` bytes, which are returned.
char* take_scratch(Context& ctx, VoteArguments& a, int64_t n_more) {
  const int64_t n_rows = int64_t{a.n_head_kv} * a.n_padded_rows();  // a multiple of 16
  const int64_t norm_bytes = n_rows * int64_t{sizeof(float2)};
  const int64_t state_bytes = norm_bytes * a.n_ranges;
  char* at = static_cast<char*>(ctx.scratch(norm_bytes + state_bytes + n_more));
  a.norms = reinterpret_cast<float2*>(at);
  a.states = reinterpret_cast<float2*>(at + norm_bytes);
  return at + norm_bytes + state_bytes;
}

Grid grid_of(int64_t x, int y, int64_t z, int n_warps, size_t shared_bytes = 0) {
  return {dim3(x, y, z), dim3(n_warps * kWarpSize), shared_bytes};
}

void merge_states(Context& ctx, const VoteArguments& a) {
  const int64_t n_rows = int64_t{a.n_head_kv} * a.n_padded_rows();
  launch(ctx, grid_of(div_up(n_rows, kVoteWarps), 1, 1, kVoteWarps), merge_vote_states_kernel, a);
}

template <typename T>
void run_plain(Context& ctx, VoteArguments a, int64_t n_units) {
  take_scratch(ctx, a, 0);
  const size_t shared_bytes = plain_vote_shared_bytes(a.head_dim);
  launch(
      ctx,
      grid_of(a.n_ranges, a.n_head_kv, div_up(a.n_padded_rows(), kPlainStateRows), 1, shared_bytes),
      plain_vote_states_kernel<T>, a);
  merge_states(ctx, a);
  launch(ctx, grid_of(n_units, a.n_head_kv, 1, 1, shared_bytes), plain_votes_kernel<T>, a);
}

template <typename T, int kDim>
void run_mma(Context& ctx, VoteArguments a, int64_t n_units) {
  const int64_t n_rows = int64_t{a.n_head_kv} * a.n_padded_rows();
  const int64_t n_fragments = n_rows / 16 * (kDim / 16 * kParts<T> * kWarpSize);
  char* const memory = take_scratch(ctx, a, n_fragments * sizeof(uint4) + n_rows * sizeof(float));
  auto* const fragments = reinterpret_cast<uint4*>(memory);
  auto* const row_scale = reinterpret_cast<float*>(fragments + n_fragments);
  launch(ctx, grid_of(a.n_row_tiles(), a.n_head_kv, 1, 1), split_queries_kernel<T, kDim>, a,
         fragments, row_scale);
  launch(ctx,
         grid_of(div_up(a.n_ranges, kVoteWarps), a.n_head_kv, div_up(a.n_row_tiles(), kStateTiles),
                 kVoteWarps),
         vote_states_kernel<T, kDim>, a, fragments, row_scale);
  merge_states(ctx, a);
  launch(ctx, grid_of(div_up(n_units, kVoteWarps), a.n_head_kv, 1, kVoteWarps),
         votes_kernel<T, kDim>, a, fragments, row_scale);
}

// A head_dim between two sizes is padded with zeros.
template <typename T>
void run(Context& ctx, const VoteArguments& a, int64_t n_units) {
  if (a.head_dim <= 64) {
    run_mma<T, 64>(ctx, a, n_units);
  } else if (a.head_dim <= 96) {
    run_mma<T, 96>(ctx, a, n_units);
  } else if (a.head_dim <= 128) {
    run_mma<T, 128>(ctx, a, n_units);
  } else if (a.head_dim <= 256) {
    run_mma<T, 256>(ctx, a, n_units);
  } else {
    run_plain<T>(ctx, a, n_units);
  }
}

}  // namespace

void window_votes(Context& ctx, const WindowVotes& w) {
  const int64_t element = w.k.stride[2];
  const int32_t longest = *std::max_element(w.n_rows.begin(), w.n_rows.end());
  VoteArguments a{};
  a.q = static_cast<const float*>(w.q.data);
  a.k = w.k.data;
  a.k_head = w.k.stride[0] / element;
  a.k_row = w.k.stride[1] / element;
  a.rows = ctx.put(w.n_rows);
  a.votes = static_cast<float*>(w.votes.data);
  a.votes_stride = w.votes.shape[1];
  a.n_window = static_cast<int>(w.q.shape[0]);
  a.padded_window = static_cast<int>(div_up(w.q.shape[0], 16) * 16);
  a.n_head_kv = static_cast<int>(w.k.shape[0]);
  a.n_group = static_cast<int>(w.q.shape[1] / w.k.shape[0]);
  a.head_dim = static_cast<int>(w.q.shape[2]);
  a.scale_log2 = w.scale * kLog2E;
  a.window_max = w.reduce == VoteReduce::max;
  a.group_max = w.group == GroupReduce::max;
  a.whole = w.whole;
  a.aligned = rows_aligned(w.k);
  a.variant = make_variant(ctx, w.variant);
  // enough warps to fill a device at any length; the number does not depend on the device, so that
  // results do not either. Fewer if many rows would make their states large.
  const int64_t most = std::clamp<int64_t>(65536 / a.n_padded_rows(), 16, 512);
  a.n_ranges = static_cast<int>(std::min(most, div_up(longest, kUnitKeys)));
  const int64_t n_units = div_up(a.n_cols(longest), kUnitKeys);  // that get votes
  if (w.k.dtype == DType::f16) {
    run<__half>(ctx, a, n_units);
  } else if (w.k.dtype == DType::bf16) {
    run<__nv_bfloat16>(ctx, a, n_units);
  } else {
    run_plain<float>(ctx, a, n_units);
  }
}

}  // namespace snapkv::cuda
