// SPDX-License-Identifier: MIT
// Op index_scores: out[t, j] = sum over h of weights[t, h] * max(0, q[t, h] . keys[j]) of the keys
// that query t sees. A task is a tile of keys, converted to f32 and transposed once for all
// queries, so that lanes are keys and nothing is added across them. Sums are in f32, and the order
// of a score's sums depends on no other key or query. Bound by arithmetic.
#include <omp.h>

#include <algorithm>
#include <cstring>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/target/highway_targets.h"
#include "backend/cpu/target/scratch.h"
#include "backend/cpu/weights/convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/attention/index_scores.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backend/cpu/target/simd_math-inl.h"

#ifndef SNAPKV_INDEX_TILE
#define SNAPKV_INDEX_TILE
namespace snapkv::cpu {

/// Keys of a task. With 128 values each they are as large as a core's first cache.
inline constexpr int kIndexTile = 64;

/// The queries of one token, and a tile of keys.
struct IndexTile {
  const float* keys;     // [d, kIndexTile]
  const float* q;        // [n_head, d]
  const float* weights;  // [n_head]
  int64_t n_head, d;
  float* scores;  // [kIndexTile]
};

}  // namespace snapkv::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace snapkv::cpu {
namespace HWY_NAMESPACE {

// As many vectors of keys and heads at once as the registers hold sums for.
#if HWY_TARGET <= HWY_AVX3
constexpr int kIndexVectors = 4;
#else
constexpr int kIndexVectors = 2;
#endif
constexpr int kIndexHeads = 4;

/// Adds what H heads from `head` on give to the scores of the keys from `at` on.
template <int H, class D>
HWY_INLINE void add_heads(D d, const IndexTile& tile, int64_t head, int at,
                          hn::Vec<D> (&scores)[kIndexVectors]) {
  const int n_lanes = static_cast<int>(hn::Lanes(d));
  const float* HWY_RESTRICT q = tile.q + head * tile.d;
  const float* HWY_RESTRICT keys = tile.keys + at;
  hn::Vec<D> sums[H][kIndexVectors];
  for (auto& sum : sums) {
    for (auto& v : sum) v = hn::Zero(d);
  }
  for (int64_t i = 0; i < tile.d; ++i, keys += kIndexTile) {
    hn::Vec<D> k[kIndexVectors];
    for (int v = 0; v < kIndexVectors; ++v) k[v] = hn::Load(d, keys + v * n_lanes);
    for (int h = 0; h < H; ++h) {
      const auto factor = hn::Set(d, q[h * tile.d + i]);
      for (int v = 0; v < kIndexVectors; ++v) sums[h][v] = hn::MulAdd(factor, k[v], sums[h][v]);
    }
  }
  for (int h = 0; h < H; ++h) {
    const auto weight = hn::Set(d, tile.weights[head + h]);
    for (int v = 0; v < kIndexVectors; ++v) {
      const auto dot = sums[h][v];  // a NaN stays one
      scores[v] = hn::MulAdd(weight, hn::IfThenZeroElse(hn::Lt(dot, hn::Zero(d)), dot), scores[v]);
    }
  }
}

void score_index_tile(const IndexTile& tile) {
  const hn::CappedTag<float, kIndexTile / kIndexVectors> d;
  const int n_lanes = static_cast<int>(hn::Lanes(d));
  for (int at = 0; at < kIndexTile; at += kIndexVectors * n_lanes) {
    hn::Vec<decltype(d)> scores[kIndexVectors];
    for (auto& v : scores) v = hn::Zero(d);
    int64_t head = 0;
    for (; head + kIndexHeads <= tile.n_head; head += kIndexHeads) {
      add_heads<kIndexHeads>(d, tile, head, at, scores);
    }
    for (; head < tile.n_head; ++head) add_heads<1>(d, tile, head, at, scores);
    for (int v = 0; v < kIndexVectors; ++v) {
      hn::Store(scores[v], d, tile.scores + at + v * n_lanes);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snapkv::cpu {

HWY_EXPORT(score_index_tile);

namespace {

/// The memory of one thread.
struct IndexRoom {
  float* keys;    // [d, kIndexTile]
  float* key;     // [d]
  float* scores;  // [kIndexTile]
};

/// `rooms`: of each thread.
void cut_index_rooms(const CpuContext& ctx, const IndexScores& s, ScratchCutter& cutter,
                     IndexRoom* rooms) {
  const int64_t d = s.keys.shape[1];
  for (int i = 0; i < ctx.n_threads; ++i) {
    const IndexRoom room = {.keys = cutter.take<float>(d * kIndexTile),
                            .key = cutter.take<float>(d),
                            .scores = cutter.take<float>(kIndexTile)};
    if (rooms != nullptr) rooms[i] = room;
  }
}

/// Transposes keys [begin, end), and zeros after them.
void transpose_keys(const Tensor& keys, int64_t begin, int64_t end, const IndexRoom& room) {
  const int64_t d = keys.shape[1];
  for (int64_t j = 0; j < kIndexTile; ++j) {
    if (begin + j < end) {
      convert_row(keys.at<const void>(begin + j), keys.dtype, d, room.key);
    } else {
      std::fill(room.key, room.key + d, 0.0f);
    }
    for (int64_t i = 0; i < d; ++i) room.keys[i * kIndexTile + j] = room.key[i];
  }
}

}  // namespace

size_t index_scores_workspace(const CpuContext& ctx, const IndexScores& s) {
  ScratchCutter sizes(nullptr);
  sizes.take<IndexRoom>(ctx.n_threads);
  cut_index_rooms(ctx, s, sizes, nullptr);
  return sizes.used();
}

void index_scores(const CpuContext& ctx, const IndexScores& s) {
  const int64_t n = s.q.shape[0], n_head = s.q.shape[1], d = s.q.shape[2];
  const int64_t n_keys = *std::max_element(s.n_seen.begin(), s.n_seen.end());
  const int64_t n_tiles = (n_keys + kIndexTile - 1) / kIndexTile;
  ScratchCutter cutter(scratch(index_scores_workspace(ctx, s)));
  auto* const rooms = cutter.take<IndexRoom>(ctx.n_threads);
  cut_index_rooms(ctx, s, cutter, rooms);
#pragma omp parallel for num_threads(team_size(ctx, n_tiles > 1)) schedule(dynamic)
  for (int64_t tile = 0; tile < n_tiles; ++tile) {
    const IndexRoom& room = rooms[omp_get_thread_num()];
    const int64_t begin = tile * kIndexTile;
    transpose_keys(s.keys, begin, std::min(n_keys, begin + kIndexTile), room);
    for (int64_t t = 0; t < n; ++t) {
      const int64_t n_scores = std::min<int64_t>(kIndexTile, s.n_seen[t] - begin);
      if (n_scores <= 0) continue;
      const IndexTile of_query = {.keys = room.keys,
                                  .q = s.q.at<const float>(t),
                                  .weights = s.weights.at<const float>(t),
                                  .n_head = n_head,
                                  .d = d,
                                  .scores = room.scores};
      HWY_DYNAMIC_DISPATCH(score_index_tile)(of_query);
      std::memcpy(s.out.at<float>(t) + begin, room.scores, n_scores * sizeof(float));
    }
  }
}

}  // namespace snapkv::cpu
#endif  // HWY_ONCE
