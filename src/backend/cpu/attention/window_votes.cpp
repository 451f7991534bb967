// SPDX-License-Identifier: MIT
// SnapKV's vote, in f32 with any compute type: rounding should not decide which rows are kept.
//
// Two passes over fixed blocks of columns; a task is one block of one KV head. The first pass
// computes each window row's (max, sum) in each block, which are merged in block order. The second
// computes the scores again and adds up the probabilities. So no memory of size [n_head, W, n_rows]
// is needed. Where many queries choose the largest probability, see largest_votes.cpp.
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/cpu/attention/attention_tile.h"
#include "backend/cpu/attention/largest_votes.h"
#include "backend/cpu/attention/online_softmax.h"
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/target/highway_targets.h"
#include "backend/cpu/target/scratch.h"
#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/attention/window_votes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backend/cpu/attention/vote_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snapkv::cpu {
namespace HWY_NAMESPACE {

void summarize_block_row(float* HWY_RESTRICT s, int n, OnlineSoftmax& out) { summarize(s, n, out); }

/// votes[j] += 2^(s[j] - max) * factor for j < n, rounded up to a whole vector.
void add_probabilities(const float* HWY_RESTRICT s, int n, float max, float factor,
                       float* HWY_RESTRICT votes) {
  const F32 d;
  const int lanes = hn::Lanes(d);
  for (int j = 0; j < n; j += lanes) {
    const auto p = exp2_nonpositive(d, hn::LoadU(d, s + j) - hn::Set(d, max));
    hn::StoreU(hn::MulAdd(p, hn::Set(d, factor), hn::LoadU(d, votes + j)), d, votes + j);
  }
}

/// votes[j] = the larger of votes[j] and 2^(s[j] - max) * factor; a NaN in either stays.
void take_larger_probabilities(const float* HWY_RESTRICT s, int n, float max, float factor,
                               float* HWY_RESTRICT votes) {
  const F32 d;
  const int lanes = hn::Lanes(d);
  for (int j = 0; j < n; j += lanes) {
    const auto p = exp2_nonpositive(d, hn::LoadU(d, s + j) - hn::Set(d, max)) * hn::Set(d, factor);
    const auto old = hn::LoadU(d, votes + j);
    const auto stays = hn::Or(hn::Ge(old, p), hn::IsNaN(old));
    hn::StoreU(hn::IfThenElse(stays, old, p), d, votes + j);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snapkv::cpu {
namespace {

HWY_EXPORT(summarize_block_row);
HWY_EXPORT(add_probabilities);
HWY_EXPORT(take_larger_probabilities);

constexpr float kLog2E = 1.44269504f;
constexpr int kBlock = 512;              // columns per task
constexpr int kRowTile = 8 * kRowGroup;  // window rows whose scores are kept at once: 96 KiB
constexpr int64_t kScoreStride = kBlock + 16;

struct Shape {
  int64_t window;
  int64_t n_group;
  int64_t n_rows;    // window * n_group rows per KV head: query head outermost, then the window
  int64_t n_padded;  // a multiple of kRowGroup
  int64_t n_head_kv;
  int64_t n_blocks;  // of the longest head
  int head_dim;
  AttentionVariant variant;
};

struct Workspace {
  float* q;              // [n_head_kv, n_padded, head_dim]
  OnlineSoftmax* state;  // [n_head_kv, n_blocks, n_padded]; block 0 becomes the total
  char* threads;         // n_threads pieces of thread_bytes
  size_t thread_bytes;
};

/// One thread's working memory.
struct ThreadSpace {
  float* k;       // one packed block
  float* scores;  // [kRowTile, kScoreStride]
  float* votes;   // [2, kBlock]: the query head's, the group's
};

ThreadSpace cut_thread(const Shape& s, ScratchCutter& cutter) {
  ThreadSpace t{};
  t.k = cutter.take<float>(packed_block_bytes(kBlock, s.head_dim, sizeof(float)) / sizeof(float));
  t.scores = cutter.take<float>(kRowTile * kScoreStride);
  t.votes = cutter.take<float>(2 * kBlock);
  return t;
}

Workspace cut(const Shape& s, int n_threads, ScratchCutter& cutter) {
  Workspace w{};
  const int64_t rows = s.n_head_kv * s.n_padded;
  w.q = cutter.take<float>(rows * s.head_dim);
  w.state = cutter.take<OnlineSoftmax>(rows * s.n_blocks);
  ScratchCutter sizes(nullptr);
  cut_thread(s, sizes);
  w.thread_bytes = sizes.used();
  w.threads = cutter.take<char>(w.thread_bytes * n_threads);
  return w;
}

/// One block of one KV head.
struct Task {
  int64_t head;
  int64_t block;
  int64_t n_kv;  // rows of the head
  int64_t first() const { return block * kBlock; }
  int n_cols() const { return static_cast<int>(std::min<int64_t>(kBlock, n_kv - first())); }
  /// Window row i sees columns [n_hidden, n_visible) of the block.
  int n_visible(const Shape& s, int64_t i) const {
    return static_cast<int>(std::clamp<int64_t>(n_kv - s.window + i + 1 - first(), 0, n_cols()));
  }
  int n_hidden(const Shape& s, int64_t i) const {
    if (s.variant.window == 0) return 0;
    const int64_t first_seen = n_kv - s.window + i + 1 - s.variant.window;
    return static_cast<int>(std::clamp<int64_t>(first_seen - first(), 0, n_cols()));
  }
};

void pack_block(const Shape& s, const WindowVotes& v, const Task& task, float* k) {
  const KvRows rows{v.k.at<char>(task.head, task.first()), v.k.stride[1], v.k.dtype, task.n_cols(),
                    s.head_dim};
  prefetch(rows);
  f32_tile_kernels(false).pack_k(rows, k);
}

/// Scores of the rows [row, row + kRowTile) of a head, or as many as there are, with the layer's
/// cap.
void tile_scores(const Shape& s, const Workspace& w, const Task& task, int64_t row,
                 const ThreadSpace& t) {
  const int n = static_cast<int>(std::min<int64_t>(kRowTile, s.n_padded - row));
  f32_tile_kernels(false).scores(w.q + (task.head * s.n_padded + row) * s.head_dim, n, s.head_dim,
                                 t.k, task.n_cols(), t.scores, kScoreStride);
  if (s.variant.softcap == 0.0f) return;
  for (int i = 0; i < n; ++i) {
    f32_tile_kernels(false).cap_scores(t.scores + i * kScoreStride, task.n_cols(),
                                       s.variant.softcap);
  }
}

void summarize_block(const Shape& s, const WindowVotes& v, const Workspace& w, const Task& task,
                     const ThreadSpace& t) {
  OnlineSoftmax* state = w.state + (task.head * s.n_blocks + task.block) * s.n_padded;
  if (task.n_hidden(s, 0) == task.n_cols()) {  // before every row's window
    std::fill(state, state + s.n_rows, OnlineSoftmax());
    return;
  }
  pack_block(s, v, task, t.k);
  for (int64_t row = 0; row < s.n_rows; row += kRowTile) {
    tile_scores(s, w, task, row, t);
    const int64_t end = std::min(row + kRowTile, s.n_rows);
    for (int64_t r = row; r < end; ++r) {
      const int first = task.n_hidden(s, r % s.window);
      HWY_DYNAMIC_DISPATCH(summarize_block_row)
      (t.scores + (r - row) * kScoreStride + first, task.n_visible(s, r % s.window) - first,
       state[r]);
    }
  }
}

/// Merges the blocks of one head's rows, in order, into block 0, and then the sinks.
void merge_head(const Shape& s, const Workspace& w, int64_t head, int64_t n_blocks) {
  OnlineSoftmax* total = w.state + head * s.n_blocks * s.n_padded;
  for (int64_t b = 1; b < n_blocks; ++b) {
    for (int64_t r = 0; r < s.n_rows; ++r) total[r].merge(total[b * s.n_padded + r]);
  }
  if (!s.variant.sinks) return;
  for (int64_t r = 0; r < s.n_rows; ++r) {
    const int64_t q_head = head * s.n_group + r / s.window;
    total[r].merge({*s.variant.sinks.at<const float>(q_head) * kLog2E, 1.0f});
  }
}

/// Adds the votes of one query head to those of its group, or keeps the larger of both.
void reduce_votes(GroupReduce group, bool is_first, const float* one, float* all) {
  for (int j = 0; j < kBlock; ++j) {
    // a NaN on either side makes the comparison false and is kept
    const float larger = all[j] >= one[j] ? all[j] : std::isnan(all[j]) ? all[j] : one[j];
    const float combined = group == GroupReduce::max ? larger : all[j] + one[j];
    all[j] = is_first ? one[j] : combined;
  }
}

void vote_block(const Shape& s, const WindowVotes& v, const Workspace& w, const Task& task,
                const ThreadSpace& t) {
  const int64_t n_voted = task.n_kv - (v.whole ? 0 : s.window);
  const int n = static_cast<int>(std::clamp<int64_t>(n_voted - task.first(), 0, kBlock));
  if (n == 0) return;
  float* out = v.votes.at<float>(task.head) + task.first();
  if (task.n_hidden(s, 0) >= n) {
    std::fill(out, out + n, 0.0f);
    return;
  }
  pack_block(s, v, task, t.k);
  const OnlineSoftmax* total = w.state + task.head * s.n_blocks * s.n_padded;
  float* one = t.votes;
  float* all = t.votes + kBlock;
  for (int64_t row = 0; row < s.n_rows; row += kRowTile) {
    tile_scores(s, w, task, row, t);
    const int64_t end = std::min(row + kRowTile, s.n_rows);
    for (int64_t r = row; r < end; ++r) {
      if (r % s.window == 0) std::fill(one, one + kBlock, 0.0f);
      float* scores = t.scores + (r - row) * kScoreStride;
      // Every window row sees every column before the window, but not every column of the window.
      const int n_visible = std::min(n, task.n_visible(s, r % s.window));
      const int n_hidden = std::min(n, task.n_hidden(s, r % s.window));
      std::fill(scores + n_visible, scores + n, -std::numeric_limits<float>::infinity());
      std::fill(scores, scores + n_hidden, -std::numeric_limits<float>::infinity());
      if (v.reduce == VoteReduce::max) {
        HWY_DYNAMIC_DISPATCH(take_larger_probabilities)
        (scores, n, total[r].max, total[r].normalize(), one);
      } else {
        HWY_DYNAMIC_DISPATCH(add_probabilities)
        (scores, n, total[r].max, total[r].normalize(), one);
      }
      if (r % s.window == s.window - 1) reduce_votes(v.group, r < s.window, one, all);
    }
  }
  const float factor = v.group == GroupReduce::mean ? 1.0f / static_cast<float>(s.n_group) : 1.0f;
  for (int j = 0; j < n; ++j) out[j] = all[j] * factor;
}

void load_queries(const Shape& s, const WindowVotes& v, const Workspace& w) {
  const TileKernels& tile = f32_tile_kernels(false);
  for (int64_t h = 0; h < s.n_head_kv; ++h) {
    for (int64_t r = 0; r < s.n_padded; ++r) {
      const int64_t real = std::min(r, s.n_rows - 1);
      tile.pack_q(v.q.at<float>(real % s.window, h * s.n_group + real / s.window), s.head_dim,
                  v.scale * kLog2E, w.q + (h * s.n_padded + r) * s.head_dim);
    }
  }
}

Shape shape_of(const WindowVotes& v) {
  Shape s{};
  s.window = v.q.shape[0];
  s.n_head_kv = v.k.shape[0];
  if (s.window == 0 || s.n_head_kv == 0) return s;
  s.n_group = v.q.shape[1] / s.n_head_kv;
  s.n_rows = s.window * s.n_group;
  s.n_padded = (s.n_rows + kRowGroup - 1) / kRowGroup * kRowGroup;
  s.head_dim = static_cast<int>(v.q.shape[2]);
  s.variant = v.variant;
  const int64_t longest = *std::max_element(v.n_rows.begin(), v.n_rows.end());
  s.n_blocks = (longest + kBlock - 1) / kBlock;
  return s;
}

int threads_of(const CpuContext& ctx, const Shape& s) {
  return team_size(ctx, s.n_head_kv * s.n_blocks > 1);
}

}  // namespace

size_t window_votes_workspace(const CpuContext& ctx, const WindowVotes& v) {
  if (suits_largest_votes(v)) return largest_votes_workspace(ctx, v);
  const Shape s = shape_of(v);
  ScratchCutter sizes(nullptr);
  cut(s, threads_of(ctx, s), sizes);
  return sizes.used();
}

void window_votes(const CpuContext& ctx, const WindowVotes& v) {
  const Shape s = shape_of(v);
  if (s.window == 0 || s.n_head_kv == 0) return;
  SNAPKV_CHECK(v.q.shape[2] % 8 == 0);  // whole vectors
  if (suits_largest_votes(v)) return largest_votes(ctx, v);
  const int64_t n_tasks = s.n_head_kv * s.n_blocks;
  const int n_threads = threads_of(ctx, s);
  ScratchCutter cutter(scratch(window_votes_workspace(ctx, v)));
  const Workspace w = cut(s, n_threads, cutter);
  load_queries(s, v, w);
  const auto task_of = [&](int64_t i) {
    const int64_t head = i / s.n_blocks;
    return Task{head, i % s.n_blocks, v.n_rows[head]};
  };
#pragma omp parallel num_threads(n_threads)
  {
    ScratchCutter own(w.threads + omp_get_thread_num() * w.thread_bytes);
    const ThreadSpace t = cut_thread(s, own);
#pragma omp for schedule(dynamic, 1)
    for (int64_t i = 0; i < n_tasks; ++i) {
      const Task task = task_of(i);
      if (task.first() < task.n_kv) summarize_block(s, v, w, task, t);
    }
#pragma omp for schedule(static)
    for (int64_t h = 0; h < s.n_head_kv; ++h) {
      merge_head(s, w, h, (v.n_rows[h] + kBlock - 1) / kBlock);
    }
#pragma omp for schedule(dynamic, 1)
    for (int64_t i = 0; i < n_tasks; ++i) {
      const Task task = task_of(i);
      if (task.first() < task.n_kv) vote_block(s, v, w, task, t);
    }
  }
}

}  // namespace snapkv::cpu
#endif  // HWY_ONCE
