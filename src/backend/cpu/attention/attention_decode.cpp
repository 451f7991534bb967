// SPDX-License-Identifier: MIT
// Attention of one query per sequence over that sequence's own rows, at the speed of memory. A task
// is one chunk of one KV head's rows, and each thread takes neighbouring chunks; each row is loaded
// once for all query heads of the group. The (max, sum, acc) of each chunk is kept, and the chunks
// of a head are merged in order. Chunk sizes depend on n_kv alone, so results do not depend on the
// number of threads. Arithmetic is in f32 (decode_chunk.h).
#include <omp.h>

#include <algorithm>

#include "backend/cpu/attention/decode_chunk.h"
#include "backend/cpu/attention/online_softmax.h"
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/target/chunk_shares.h"
#include "backend/cpu/target/scratch.h"
#include "base/check.h"

namespace snapkv::cpu {
namespace {

constexpr float kLog2E = 1.44269504f;
constexpr int64_t kMinChunkRows = 512;  // 128 KiB of f16 K and V of head_dim 64: 4 us of memory
/// Of rows that many wide queries share, as those of latent attention: a few us of arithmetic.
constexpr int64_t kMinSharedRows = 128;
constexpr int64_t kSharedValues = 4096;  // of the queries that share a row
constexpr int64_t kMaxChunks = 64;       // per head; bounds the work of merging

struct Shape {
  explicit Shape(const DecodeAttention& a)
      : n_head_kv(std::ssize(a.heads) / a.q.shape[0]),
        n_group(a.q.shape[1] / n_head_kv),
        head_dim(a.q.shape[2]),
        value_dim(a.value_dim()) {}

  /// Rows per chunk; depends on n_kv and on widths only.
  int64_t chunk_rows(int64_t n_kv) const {
    const int64_t least = n_group * head_dim > kSharedValues ? kMinSharedRows : kMinChunkRows;
    const int64_t even = (n_kv + kMaxChunks - 1) / kMaxChunks;
    return std::max(least, (even + least - 1) / least * least);
  }
  int64_t n_chunks(int64_t n_kv) const { return (n_kv + chunk_rows(n_kv) - 1) / chunk_rows(n_kv); }

  int64_t n_head_kv, n_group, head_dim, value_dim;
};

/// Of all heads.
int64_t count_chunks(const DecodeAttention& a) {
  const Shape shape(a);
  int64_t total = 0;
  for (const HeadRows& head : a.heads) total += shape.n_chunks(head.n_kv);
  return total;
}

bool uses_integers(const DecodeAttention& a) {
  return !a.v_in_k && a.value_dim() == a.q.shape[2] && decodes_with_vnni(a.kv_dtype, a.value_dim());
}

/// The memory of one call.
struct Workspace {
  int64_t* first_chunk;        // [n_heads + 1]: chunks of (sequence, KV head) i start here
  int32_t* chunk_head;         // [n_chunks]
  float* q;                    // [n_heads, n_group, head_dim] scaled
  ScoreQuery* queries;         // [n_heads, n_group], null if not used
  float* scores;               // [n_threads, n_group, kScoreStride]
  OnlineSoftmax* state;        // [n_chunks, n_group]
  float* acc;                  // [n_chunks, n_group, value_dim]
  ChunkShares::Share* shares;  // [n_threads]
};

Workspace cut(const DecodeAttention& a, int n_threads, int64_t total, ScratchCutter& cutter) {
  const int64_t heads = std::ssize(a.heads), head_dim = a.q.shape[2];
  const int64_t q_rows = a.q.shape[0] * a.q.shape[1], group = q_rows / heads;
  Workspace w{};
  w.first_chunk = cutter.take<int64_t>(heads + 1);
  w.chunk_head = cutter.take<int32_t>(total);
  w.q = cutter.take<float>(q_rows * head_dim);
  if (uses_integers(a)) w.queries = cutter.take<ScoreQuery>(q_rows);
  w.scores = cutter.take<float>(n_threads * group * kScoreStride);
  w.state = cutter.take<OnlineSoftmax>(total * group);
  w.acc = cutter.take<float>(total * group * a.value_dim());
  w.shares = cutter.take<ChunkShares::Share>(n_threads);
  return w;
}

/// Computes the state and acc of chunk `c`.
void run_chunk(const DecodeAttention& a, const Shape& s, const Workspace& w, int64_t c,
               int thread) {
  const int32_t head = w.chunk_head[c];
  const HeadRows& rows = a.heads[head];
  const int64_t size = s.chunk_rows(rows.n_kv);
  const int64_t first = (c - w.first_chunk[head]) * size;
  const int64_t first_q = static_cast<int64_t>(head) * s.n_group;
  decode_chunk(
      {.k = static_cast<const char*>(rows.k) + first * row_bytes(a.kv_dtype, s.head_dim),
       .v = static_cast<const char*>(rows.v) + first * a.v_step(),
       .v_step = a.v_step(),
       .dtype = a.kv_dtype,
       .n_rows = static_cast<int>(std::min(size, rows.n_kv - first)),
       .head_dim = static_cast<int>(s.head_dim),
       .value_dim = static_cast<int>(s.value_dim),
       .n_group = static_cast<int>(s.n_group),
       .softcap = a.variant.softcap,
       .q = w.q + first_q * s.head_dim,
       .queries = w.queries == nullptr ? nullptr : w.queries + first_q,
       .scores = w.scores + thread * s.n_group * kScoreStride,
       .state = w.state + c * s.n_group,
       .acc = w.acc + c * s.n_group * s.value_dim});
}

/// Computes the outputs of one KV head of one sequence by merging its chunks in order.
void merge_head(const DecodeAttention& a, const Shape& s, const Workspace& w, int64_t head) {
  const int64_t begin = w.first_chunk[head];
  for (int64_t g = 0; g < s.n_group; ++g) {
    OnlineSoftmax total = w.state[begin * s.n_group + g];
    float* acc = w.acc + (begin * s.n_group + g) * s.value_dim;
    for (int64_t c = begin + 1; c < w.first_chunk[head + 1]; ++c) {
      const auto f = total.merge(w.state[c * s.n_group + g]);
      const float* other = w.acc + (c * s.n_group + g) * s.value_dim;
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

/// Fills in the chunks' starts and the scaled queries.
void prepare(const DecodeAttention& a, const Shape& s, const Workspace& w) {
  int64_t next = 0;
  for (size_t i = 0; i < a.heads.size(); ++i) {
    w.first_chunk[i] = next;
    for (int64_t n = s.n_chunks(a.heads[i].n_kv); n > 0; --n) {
      w.chunk_head[next++] = static_cast<int32_t>(i);
    }
  }
  w.first_chunk[a.heads.size()] = next;
  float* to = w.q;
  for (int64_t seq = 0; seq < a.q.shape[0]; ++seq) {
    for (int64_t h = 0; h < a.q.shape[1]; ++h, to += s.head_dim) {
      const float* q = a.q.at<float>(seq, h);
      for (int64_t i = 0; i < s.head_dim; ++i) to[i] = q[i] * (a.scale * kLog2E);
      if (w.queries != nullptr) {
        prepare_score_query(to, static_cast<int>(s.head_dim), w.queries[seq * a.q.shape[1] + h]);
      }
    }
  }
}

}  // namespace

size_t attention_decode_workspace(const CpuContext& ctx, const DecodeAttention& a) {
  const int64_t total = count_chunks(a);
  ScratchCutter sizes(nullptr);
  cut(a, team_size(ctx, total > 1), total, sizes);
  return sizes.used();
}

void attention_decode(const CpuContext& ctx, const DecodeAttention& a) {
  if (a.heads.empty()) return;
  SNAPKV_CHECK(a.q.shape[2] % 8 == 0 && a.value_dim() % 8 == 0);  // whole vectors
  const int64_t n_heads = std::ssize(a.heads);
  const Shape shape(a);
  const int64_t total = count_chunks(a);
  const int n_threads = team_size(ctx, total > 1);
  ScratchCutter cutter(scratch(attention_decode_workspace(ctx, a)));
  const Workspace w = cut(a, n_threads, total, cutter);
  prepare(a, shape, w);
  ChunkShares shares(w.shares, n_threads, total);
#pragma omp parallel num_threads(n_threads)
  {
    const int thread = omp_get_thread_num();
    for (int64_t c; (c = shares.take(thread)) >= 0;) run_chunk(a, shape, w, c, thread);
#pragma omp barrier
#pragma omp for schedule(static)
    for (int64_t i = 0; i < n_heads; ++i) merge_head(a, shape, w, i);
  }
}

}  // namespace snapkv::cpu
