// SPDX-License-Identifier: MIT
// Attention of one query per sequence over that sequence's own rows, at the speed of memory. A task
// is one split of one KV head's rows, and each thread takes neighbouring splits; each row is loaded
// once for all query heads of the group, and for all tokens of a step whose rows begin at the same
// place, as those of one sequence do (a later one sees more rows). The (max, sum, acc) of each
// split is kept, and the splits of a head are merged in order. Split sizes depend on n_kv alone, so
// results depend neither on the number of threads nor on the other tokens. Arithmetic is in f32
// (decode_split.h).
#include <omp.h>

#include <algorithm>

#include "backend/cpu/attention/decode_split.h"
#include "backend/cpu/attention/online_softmax.h"
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/target/chunk_shares.h"
#include "backend/cpu/target/scratch.h"
#include "base/check.h"

namespace snapkv::cpu {
namespace {

constexpr float kLog2E = 1.44269504f;
constexpr int64_t kMinSplitRows = 512;  // 128 KiB of f16 K and V of head_dim 64: 4 us of memory
/// Of rows that many wide queries share, as those of latent attention: a few us of arithmetic.
constexpr int64_t kMinSharedRows = 128;
constexpr int64_t kSharedValues = 4096;  // of the queries that share a row
constexpr int64_t kMaxSplits = 64;       // per head; bounds the work of merging

struct Shape {
  explicit Shape(const DecodeAttention& a)
      : n_head_kv(std::ssize(a.heads) / a.q.shape[0]),
        n_group(a.q.shape[1] / n_head_kv),
        head_dim(a.q.shape[2]),
        value_dim(a.value_dim()) {}

  /// Rows per split; depends on n_kv and on widths only.
  int64_t split_rows(int64_t n_kv) const {
    const int64_t least = n_group * head_dim > kSharedValues ? kMinSharedRows : kMinSplitRows;
    const int64_t even = (n_kv + kMaxSplits - 1) / kMaxSplits;
    return std::max(least, (even + least - 1) / least * least);
  }
  int64_t n_splits(int64_t n_kv) const { return (n_kv + split_rows(n_kv) - 1) / split_rows(n_kv); }

  int64_t n_head_kv, n_group, head_dim, value_dim;
};

bool uses_integers(const DecodeAttention& a) {
  return !a.v_in_k && a.value_dim() == a.q.shape[2] && decodes_with_vnni(a.kv_dtype, a.value_dim());
}

/// Where a (token, KV head), of which the n-th is a.heads[n], finds its queries and its splits.
struct HeadPlan {
  int64_t query;         // place of its group's queries in Workspace::q
  int64_t shared_task;   // of the first split that it shares with others: those before and after it
  int64_t shared_place;  // of its group among those of such a task
  int64_t n_shared;      // splits
  int64_t own_task;      // of the first split after these
};
/// A split for the group of one (token, KV head), or of several whose rows begin alike.
struct Task {
  int64_t head;     // the first of them
  int64_t n_heads;  // one for each token
  int64_t split;
  int64_t place;  // of the first group's results in Workspace::state and acc
};

/// Calls f(first, n) for each run of tokens, n of them from `first` on, whose rows of a KV head
/// begin at the same place and are cut into splits of the same size.
template <typename F>
void for_each_run(const DecodeAttention& a, const Shape& shape, int64_t kv_head, F f) {
  const int64_t n_tokens = a.q.shape[0];
  const auto rows = [&](int64_t t) -> const HeadRows& {
    return a.heads[t * shape.n_head_kv + kv_head];
  };
  for (int64_t first = 0, end = 0; first < n_tokens; first = end) {
    const HeadRows& head = rows(first);
    end = first + 1;
    while (!a.chosen && end < n_tokens && rows(end).k == head.k && rows(end).v == head.v &&
           rows(end).n_kv >= head.n_kv &&
           shape.split_rows(rows(end).n_kv) == shape.split_rows(head.n_kv)) {
      ++end;
    }
    f(first, end - first);
  }
}

/// How many whole splits the tokens of a run share: none if there is one token. The sums of q8_0's
/// scores, unless they are of integers, are rounded by how many query heads are computed at once.
int64_t n_shared_splits(const DecodeAttention& a, const Shape& shape, int64_t head, int64_t n) {
  const bool rounds_alike = a.kv_dtype != DType::q8_0 || uses_integers(a);
  return n > 1 && rounds_alike ? a.heads[head].n_kv / shape.split_rows(a.heads[head].n_kv) : 0;
}

struct Counts {
  int64_t n_tasks = 0;
  int64_t n_places = 0;    // for results of a group
  int64_t most_heads = 1;  // of a task
};
Counts count_tasks(const DecodeAttention& a) {
  const Shape shape(a);
  Counts counts;
  for (int64_t h = 0; h < shape.n_head_kv; ++h) {
    for_each_run(a, shape, h, [&](int64_t first, int64_t n) {
      const int64_t n_shared = n_shared_splits(a, shape, first * shape.n_head_kv + h, n);
      counts.n_tasks += n_shared;
      if (n_shared > 0) counts.most_heads = std::max(counts.most_heads, n);
      for (int64_t t = first; t < first + n; ++t) {
        const int64_t n_splits = shape.n_splits(a.n_rows(t * shape.n_head_kv + h));
        counts.n_tasks += n_splits - n_shared;
        counts.n_places += n_splits;
      }
    });
  }
  return counts;
}

/// The memory of one call.
struct Workspace {
  HeadPlan* heads;             // [n_heads], a.heads
  Task* tasks;                 // [n_tasks]
  float* q;                    // [n_heads, n_group, head_dim] scaled, in the order of runs
  ScoreQuery* queries;         // [n_heads, n_group], null if not used
  float* scores;               // [n_threads, most_heads * n_group, kScoreStride]
  OnlineSoftmax* state;        // [n_places, n_group]
  float* acc;                  // [n_places, n_group, value_dim]
  ChunkShares::Share* shares;  // [n_threads]
};

Workspace cut(const DecodeAttention& a, int n_threads, const Counts& counts,
              ScratchCutter& cutter) {
  const int64_t heads = std::ssize(a.heads), head_dim = a.q.shape[2];
  const int64_t q_rows = a.q.shape[0] * a.q.shape[1], group = q_rows / heads;
  Workspace w{};
  w.heads = cutter.take<HeadPlan>(heads);
  w.tasks = cutter.take<Task>(counts.n_tasks);
  w.q = cutter.take<float>(q_rows * head_dim);
  if (uses_integers(a)) w.queries = cutter.take<ScoreQuery>(q_rows);
  w.scores = cutter.take<float>(n_threads * counts.most_heads * group * kScoreStride);
  w.state = cutter.take<OnlineSoftmax>(counts.n_places * group);
  w.acc = cutter.take<float>(counts.n_places * group * a.value_dim());
  w.shares = cutter.take<ChunkShares::Share>(n_threads);
  return w;
}

/// Computes the states and accs of a task.
void run_task(const DecodeAttention& a, const Shape& s, const Workspace& w, const Task& task,
              float* scores) {
  const HeadRows& rows = a.heads[task.head];
  const int64_t n_rows = a.n_rows(task.head), size = s.split_rows(n_rows);
  const int64_t first = task.split * size, skipped = a.chosen ? 0 : first;
  const int64_t query = w.heads[task.head].query * s.n_group;
  decode_split({.k = static_cast<const char*>(rows.k) + skipped * row_bytes(a.kv_dtype, s.head_dim),
                .v = static_cast<const char*>(rows.v) + skipped * a.v_step(),
                .v_step = a.v_step(),
                .chosen = a.chosen ? a.chosen.at<const int32_t>(task.head) + first : nullptr,
                .dtype = a.kv_dtype,
                .n_rows = static_cast<int>(std::min(size, n_rows - first)),
                .head_dim = static_cast<int>(s.head_dim),
                .value_dim = static_cast<int>(s.value_dim),
                .n_group = static_cast<int>(task.n_heads * s.n_group),
                .softcap = a.variant.softcap,
                .q = w.q + query * s.head_dim,
                .queries = w.queries == nullptr ? nullptr : w.queries + query,
                .scores = scores,
                .state = w.state + task.place * s.n_group,
                .acc = w.acc + task.place * s.n_group * s.value_dim});
}

/// Computes the outputs of one KV head of one token by merging its splits in order.
void merge_head(const DecodeAttention& a, const Shape& s, const Workspace& w, int64_t head) {
  const HeadPlan& plan = w.heads[head];
  const int64_t n_splits = s.n_splits(a.n_rows(head));
  // where the results of the i-th split are
  const auto place = [&](int64_t i) {
    if (i < plan.n_shared) return w.tasks[plan.shared_task + i].place + plan.shared_place;
    return w.tasks[plan.own_task + i - plan.n_shared].place;
  };
  for (int64_t g = 0; g < s.n_group; ++g) {
    OnlineSoftmax total = w.state[place(0) * s.n_group + g];
    float* acc = w.acc + (place(0) * s.n_group + g) * s.value_dim;
    for (int64_t c = 1; c < n_splits; ++c) {
      const int64_t at = place(c) * s.n_group + g;
      const auto f = total.merge(w.state[at]);
      const float* other = w.acc + at * s.value_dim;
      for (int64_t i = 0; i < s.value_dim; ++i) acc[i] = acc[i] * f.self + other[i] * f.other;
    }
    const int64_t q_head = head % s.n_head_kv * s.n_group + g;
    float before_sink = 1.0f;
    if (a.variant.sinks) {
      before_sink = total.merge({*a.variant.sinks.at<const float>(q_head) * kLog2E, 1.0f}).self;
    }
    float* out = a.out.at<float>(head / s.n_head_kv, q_head);
    const float factor = before_sink * total.normalize();
    for (int64_t i = 0; i < s.value_dim; ++i) out[i] = acc[i] * factor;
  }
}

/// Divides the rows into tasks. Those of one run of tokens stand together.
void plan_tasks(const DecodeAttention& a, const Shape& s, const Workspace& w) {
  int64_t n_tasks = 0, n_places = 0, n_queries = 0;
  const auto add = [&](int64_t head, int64_t n_heads, int64_t split) {
    w.tasks[n_tasks++] = {head, n_heads, split, n_places};
    n_places += n_heads;
  };
  for (int64_t h = 0; h < s.n_head_kv; ++h) {
    for_each_run(a, s, h, [&](int64_t first, int64_t n) {
      const int64_t head = first * s.n_head_kv + h;
      const int64_t n_shared = n_shared_splits(a, s, head, n), shared_task = n_tasks;
      for (int64_t c = 0; c < n_shared; ++c) add(head, n, c);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t own = head + i * s.n_head_kv;
        w.heads[own] = {n_queries++, shared_task, i, n_shared, n_tasks};
        for (int64_t c = n_shared; c < s.n_splits(a.n_rows(own)); ++c) add(own, 1, c);
      }
    });
  }
}

/// Fills in the scaled queries, in the order that plan_tasks() chose.
void scale_queries(const DecodeAttention& a, const Shape& s, const Workspace& w) {
  for (int64_t head = 0; head < std::ssize(a.heads); ++head) {
    for (int64_t g = 0; g < s.n_group; ++g) {
      const int64_t row = w.heads[head].query * s.n_group + g;
      const float* q = a.q.at<float>(head / s.n_head_kv, head % s.n_head_kv * s.n_group + g);
      float* to = w.q + row * s.head_dim;
      for (int64_t i = 0; i < s.head_dim; ++i) to[i] = q[i] * (a.scale * kLog2E);
      if (w.queries != nullptr) {
        prepare_score_query(to, static_cast<int>(s.head_dim), w.queries[row]);
      }
    }
  }
}

}  // namespace

size_t attention_decode_workspace(const CpuContext& ctx, const DecodeAttention& a) {
  const Counts counts = count_tasks(a);
  ScratchCutter sizes(nullptr);
  cut(a, team_size(ctx, counts.n_tasks > 1), counts, sizes);
  return sizes.used();
}

void attention_decode(const CpuContext& ctx, const DecodeAttention& a) {
  if (a.heads.empty()) return;
  SNAPKV_CHECK(a.q.shape[2] % 8 == 0 && a.value_dim() % 8 == 0);  // whole vectors
  const int64_t n_heads = std::ssize(a.heads);
  const Shape shape(a);
  const Counts counts = count_tasks(a);
  const int n_threads = team_size(ctx, counts.n_tasks > 1);
  ScratchCutter cutter(scratch(attention_decode_workspace(ctx, a)));
  const Workspace w = cut(a, n_threads, counts, cutter);
  plan_tasks(a, shape, w);
  scale_queries(a, shape, w);
  const int64_t n_scores = counts.most_heads * shape.n_group * kScoreStride;
  ChunkShares shares(w.shares, n_threads, counts.n_tasks);
#pragma omp parallel num_threads(n_threads)
  {
    const int thread = omp_get_thread_num();
    for (int64_t i; (i = shares.take(thread)) >= 0;) {
      run_task(a, shape, w, w.tasks[i], w.scores + thread * n_scores);
    }
#pragma omp barrier
#pragma omp for schedule(static)
    for (int64_t i = 0; i < n_heads; ++i) merge_head(a, shape, w, i);
  }
}

}  // namespace snapkv::cpu
