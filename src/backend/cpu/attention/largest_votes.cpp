// SPDX-License-Identifier: MIT
// The largest vote needs each score once and one exponential for it: the largest of the
// probabilities 2^(s - l), where l is the query's log-sum-exp, is 2^(largest s - l). A task is a
// tile of query rows and all columns that they see, whose scores stay in the cache from the
// product to the maximum. In f32 with any compute type, like window_votes.cpp.
#include "backend/cpu/attention/largest_votes.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/cpu/attention/attention_tile.h"
#include "backend/cpu/attention/online_softmax.h"
#include "backend/cpu/target/highway_targets.h"
#include "backend/cpu/target/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/attention/largest_votes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backend/cpu/attention/vote_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snapkv::cpu {
namespace HWY_NAMESPACE {

void summarize_row(float* HWY_RESTRICT s, int n, OnlineSoftmax& out) { summarize(s, n, out); }

/// The larger of a and b, or a NaN of either.
template <class V>
HWY_INLINE V larger(V a, V b) {
  return hn::IfThenElse(hn::Or(hn::Ge(a, b), hn::IsNaN(a)), a, b);
}

/// best[j] = the larger of best[j] and s[j] - l for j < n, rounded up to a whole vector.
void take_larger_logs(const float* HWY_RESTRICT s, int n, float l, float* HWY_RESTRICT best) {
  const F32 d;
  const int lanes = hn::Lanes(d);
  for (int j = 0; j < n; j += lanes) {
    hn::StoreU(larger(hn::LoadU(d, best + j), hn::LoadU(d, s + j) - hn::Set(d, l)), d, best + j);
  }
}

/// best[j] of the first thread = 2^(the largest of the threads' best[j]) for j < n, rounded up to a
/// whole vector. The threads' pieces are `stride` apart.
void merge_logs(float* HWY_RESTRICT best, int64_t stride, int n_threads, int64_t n) {
  const F32 d;
  const int lanes = hn::Lanes(d);
  for (int64_t j = 0; j < n; j += lanes) {
    auto most = hn::LoadU(d, best + j);
    for (int t = 1; t < n_threads; ++t) most = larger(most, hn::LoadU(d, best + t * stride + j));
    // rounding may make a log-sum-exp smaller than its largest score
    most = hn::IfThenElse(hn::Gt(most, hn::Zero(d)), hn::Zero(d), most);
    hn::StoreU(exp2_nonpositive(d, most), d, best + j);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snapkv::cpu {
namespace {

HWY_EXPORT(summarize_row);
HWY_EXPORT(take_larger_logs);
HWY_EXPORT(merge_logs);

constexpr float kLog2E = 1.44269504f;
constexpr int kBlock = 512;              // columns that are packed together
constexpr int kRowTile = 4 * kRowGroup;  // query rows of a task
constexpr int64_t kMostColumns = 8192;   // the scores of a tile take 768 KiB then
constexpr int64_t kFewestQueries = 48;   // below, there are fewer tasks than blocks of columns

struct Shape {
  int64_t window = 0;
  int64_t n_group = 0;
  int64_t n_rows = 0;   // window * n_group rows per KV head: query head outermost
  int64_t n_tiles = 0;  // of a KV head
  int64_t n_head_kv = 0;
  int64_t n_blocks = 0;  // of the longest head
  int head_dim = 0;
  int64_t stride() const { return n_blocks * kBlock + 16; }  // of a row of scores
  int64_t block_floats() const {
    return packed_block_bytes(kBlock, head_dim, sizeof(float)) / int64_t{sizeof(float)};
  }
};

Shape make_shape(const WindowVotes& v) {
  Shape s;
  s.window = v.q.shape[0];
  s.n_head_kv = v.k.shape[0];
  s.n_group = v.q.shape[1] / s.n_head_kv;
  s.n_rows = s.window * s.n_group;
  s.n_tiles = (s.n_rows + kRowTile - 1) / kRowTile;
  s.head_dim = static_cast<int>(v.q.shape[2]);
  const int64_t longest = *std::max_element(v.n_rows.begin(), v.n_rows.end());
  s.n_blocks = (longest + kBlock - 1) / kBlock;
  return s;
}

/// One head's memory: its packed keys, and for each thread a tile of queries, their scores, and
/// the logarithms of the largest probabilities so far.
struct Workspace {
  float* k;       // [n_blocks, block_floats]
  float* q;       // [n_threads, kRowTile, head_dim]
  float* scores;  // [n_threads, kRowTile, stride]
  float* best;    // [n_threads, stride]
};

Workspace cut(const Shape& s, int n_threads, ScratchCutter& cutter) {
  Workspace w{};
  w.k = cutter.take<float>(s.n_blocks * s.block_floats());
  w.q = cutter.take<float>(int64_t{n_threads} * kRowTile * s.head_dim);
  w.scores = cutter.take<float>(n_threads * kRowTile * s.stride());
  w.best = cutter.take<float>(n_threads * s.stride());
  return w;
}

/// A tile of query rows of one KV head, and what its thread works with.
struct Tile {
  const Shape& s;
  const WindowVotes& v;
  int64_t head, n_kv;  // the head and how many rows it has
  int64_t begin, end;  // its rows
  const float* k;
  float *q, *scores, *best;

  int64_t query(int64_t row) const { return row % s.window; }
  /// A row sees the columns [first(row), last(row)).
  int64_t last(int64_t row) const { return n_kv - s.window + query(row) + 1; }
  int64_t first(int64_t row) const {
    return v.variant.window == 0 ? 0 : std::max<int64_t>(0, last(row) - v.variant.window);
  }
};

void pack_queries(const Tile& t) {
  for (int64_t r = t.begin; r < t.begin + kRowTile; ++r) {
    const int64_t row = std::min(r, t.end - 1);  // padded with the last one
    f32_tile_kernels(false).pack_q(
        t.v.q.at<float>(t.query(row), t.head * t.s.n_group + row / t.s.window), t.s.head_dim,
        t.v.scale * kLog2E, t.q + (r - t.begin) * t.s.head_dim);
  }
}

void compute_scores(const Tile& t) {
  int64_t first = t.first(t.begin), last = 0;
  for (int64_t r = t.begin; r < t.end; ++r) {
    first = std::min(first, t.first(r));
    last = std::max(last, t.last(r));
  }
  const int64_t stride = t.s.stride();
  for (int64_t col = first / kBlock * kBlock; col < last; col += kBlock) {
    const int n = static_cast<int>(std::min<int64_t>(kBlock, last - col));
    f32_tile_kernels(false).scores(t.q, kRowTile, t.s.head_dim,
                                   t.k + col / kBlock * t.s.block_floats(), n, t.scores + col,
                                   stride);
    if (t.v.variant.softcap == 0.0f) continue;
    for (int64_t r = 0; r < t.end - t.begin; ++r) {
      f32_tile_kernels(false).cap_scores(t.scores + r * stride + col, n, t.v.variant.softcap);
    }
  }
}

/// The logarithm of the sum of 2^s over what a row sees, its sink included.
float log_sum(const Tile& t, int64_t row, float* scores, int n) {
  OnlineSoftmax state;
  HWY_DYNAMIC_DISPATCH(summarize_row)(scores, n, state);
  if (t.v.variant.sinks) {
    const int64_t q_head = t.head * t.s.n_group + row / t.s.window;
    state.merge({*t.v.variant.sinks.at<const float>(q_head) * kLog2E, 1.0f});
  }
  return state.max + std::log2(state.sum);
}

void vote(const Tile& t) {
  pack_queries(t);
  compute_scores(t);
  for (int64_t r = t.begin; r < t.end; ++r) {
    const int64_t first = t.first(r);
    const int n = static_cast<int>(t.last(r) - first);
    float* const scores = t.scores + (r - t.begin) * t.s.stride() + first;
    const float l = log_sum(t, r, scores, n);
    HWY_DYNAMIC_DISPATCH(take_larger_logs)(scores, n, l, t.best + first);
  }
}

int threads_of(const CpuContext& ctx, const Shape& s) { return team_size(ctx, s.n_tiles > 1); }

}  // namespace

bool suits_largest_votes(const WindowVotes& v) {
  return v.reduce == VoteReduce::max && v.group == GroupReduce::max &&
         v.q.shape[0] >= kFewestQueries && v.k.shape[0] > 0 &&
         *std::max_element(v.n_rows.begin(), v.n_rows.end()) <= kMostColumns;
}

size_t largest_votes_workspace(const CpuContext& ctx, const WindowVotes& v) {
  const Shape s = make_shape(v);
  ScratchCutter sizes(nullptr);
  cut(s, threads_of(ctx, s), sizes);
  return sizes.used();
}

void largest_votes(const CpuContext& ctx, const WindowVotes& v) {
  const Shape s = make_shape(v);
  const int n_threads = threads_of(ctx, s);
  ScratchCutter cutter(scratch(largest_votes_workspace(ctx, v)));
  const Workspace w = cut(s, n_threads, cutter);
#pragma omp parallel num_threads(n_threads)
  for (int64_t head = 0; head < s.n_head_kv; ++head) {
    const int64_t n_kv = v.n_rows[head], thread = omp_get_thread_num();
#pragma omp for schedule(static)
    for (int64_t first = 0; first < n_kv; first += kBlock) {
      const KvRows rows{v.k.at<char>(head, first), v.k.stride[1], v.k.dtype,
                        static_cast<int>(std::min<int64_t>(kBlock, n_kv - first)), s.head_dim};
      prefetch(rows);
      f32_tile_kernels(false).pack_k(rows, w.k + first / kBlock * s.block_floats());
    }
    float* const best = w.best + thread * s.stride();
    std::fill_n(best, s.stride(), -std::numeric_limits<float>::infinity());
#pragma omp for schedule(dynamic, 1)
    for (int64_t i = 0; i < s.n_tiles; ++i) {
      vote({.s = s,
            .v = v,
            .head = head,
            .n_kv = n_kv,
            .begin = i * kRowTile,
            .end = std::min(s.n_rows, (i + 1) * kRowTile),
            .k = w.k,
            .q = w.q + thread * kRowTile * s.head_dim,
            .scores = w.scores + thread * kRowTile * s.stride(),
            .best = best});
    }
#pragma omp single
    {
      const int64_t n = n_kv - (v.whole ? 0 : s.window);
      HWY_DYNAMIC_DISPATCH(merge_logs)(w.best, s.stride(), n_threads, n);
      std::copy_n(w.best, n, v.votes.at<float>(head));
    }
  }
}

}  // namespace snapkv::cpu
#endif  // HWY_ONCE
