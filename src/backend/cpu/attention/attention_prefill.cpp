// SPDX-License-Identifier: MIT
// Attention of a chunk of queries: blocked, with an online softmax (FlashAttention-2, arXiv
// 2307.08691). A task is one KV head and a range of query tokens. The group's query heads are
// stacked as rows, token by token, so that each block of K and V is converted and packed once for
// all of them. Blocks beyond the causal diagonal or before a sliding window are skipped, and only
// blocks at these edges are masked. A row's arithmetic depends on its own block boundaries alone,
// so neither the split into tasks nor the number of threads changes a bit of the result.
//
// Sparse attention: a task is a block of queries, and the rows that it has chosen are copied
// together, a whole block of KV rows at a time.
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "backend/cpu/attention/attention_tile.h"
#include "backend/cpu/attention/choose_blocks.h"
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/target/scratch.h"
#include "base/check.h"

namespace snapkv::cpu {
namespace {

constexpr float kLog2E = 1.44269504f;

/// How a call is divided into tasks, and what a task needs.
struct Plan {
  const TileKernels* tile = nullptr;
  int head_dim = 0;   // of queries and keys
  int value_dim = 0;
  int n_group = 0;
  int64_t n_tokens = 0;
  int64_t task_tokens = 0;
  int64_t n_ranges = 0;  // tasks per KV head
  int block_rows = 0;    // KV rows per block
  int64_t max_rows = 0;  // query rows of a task, padded
  int64_t n_kv_blocks = 0;  // that choose_blocks() chooses from; 0: all rows are seen
  size_t thread_bytes = 0;
};

/// Memory of a thread, reused from task to task.
struct Workspace {
  char* q;             // [max_rows, head_dim] packed
  int32_t* n_hidden;   // [max_rows]
  int32_t* n_visible;  // [max_rows]
  float* max;          // [max_rows]
  float* sum;          // [max_rows]
  float* acc;          // [max_rows, padded_dim(value_dim)]
  char* k;             // one packed block
  char* v;
  char* scratch;
  // with sparse attention: a block of chosen rows before it is packed, and their blocks' numbers
  char* k_rows;
  char* v_rows;
  int32_t* chosen;  // [n_kv_blocks]
};

Workspace cut(const Plan& plan, ScratchCutter cutter, size_t* used = nullptr) {
  const int64_t rows = plan.max_rows;
  const auto block_bytes = [&](int dim) {
    return packed_block_bytes(plan.block_rows, dim, plan.tile->element_bytes);
  };
  Workspace w{};
  w.q = cutter.take<char>(rows * plan.head_dim * plan.tile->element_bytes);
  w.n_hidden = cutter.take<int32_t>(rows);
  w.n_visible = cutter.take<int32_t>(rows);
  w.max = cutter.take<float>(rows);
  w.sum = cutter.take<float>(rows);
  w.acc = cutter.take<float>(rows * padded_dim(plan.value_dim));
  w.k = cutter.take<char>(block_bytes(plan.head_dim));
  w.v = cutter.take<char>(block_bytes(plan.value_dim));
  w.scratch = cutter.take<char>(attend_scratch_bytes(plan.block_rows));
  if (plan.n_kv_blocks > 0) {
    w.k_rows = cutter.take<char>(plan.block_rows * plan.head_dim * sizeof(float));
    w.v_rows = cutter.take<char>(plan.block_rows * plan.value_dim * sizeof(float));
    w.chosen = cutter.take<int32_t>(plan.n_kv_blocks);
  }
  if (used != nullptr) *used = cutter.used();
  return w;
}

Plan make_plan(const CpuContext& ctx, const PrefillAttention& a) {
  Plan plan;
  const bool bf16 = ctx.compute == DType::bf16;
  plan.tile = bf16 && ctx.native_bf16 && has_bf16_tile_kernels() ? &bf16_tile_kernels()
                                                                 : &f32_tile_kernels(bf16);
  const int64_t n_head_kv = a.k.shape[0];
  plan.head_dim = static_cast<int>(a.q.shape[2]);
  plan.value_dim = static_cast<int>(a.v.shape[2]);
  plan.n_group = static_cast<int>(a.q.shape[1] / n_head_kv);
  plan.n_tokens = a.q.shape[0];
  plan.block_rows = kv_block_rows(plan.head_dim);
  // A task's accumulators take at most 1 MiB. There should be enough tasks to balance the threads,
  // but none of fewer than 64 tokens, since each task packs K and V for itself.
  const int64_t row_bytes = padded_dim(plan.value_dim) * int64_t{sizeof(float)};
  const int64_t max_tokens = std::max<int64_t>((1 << 20) / (row_bytes * plan.n_group), 16);
  const int64_t wanted = (3 * ctx.n_threads + n_head_kv - 1) / n_head_kv;
  const int64_t balanced = std::max<int64_t>((plan.n_tokens + wanted - 1) / wanted, 64);
  const int64_t at_most = std::min({max_tokens, balanced, plan.n_tokens});
  plan.n_ranges = (plan.n_tokens + at_most - 1) / at_most;
  plan.task_tokens = (plan.n_tokens + plan.n_ranges - 1) / plan.n_ranges;
  if (a.sparse.on()) {
    const int32_t n_past = *std::max_element(a.n_past.begin(), a.n_past.end());
    plan.n_kv_blocks = n_blocks_of(n_past + plan.n_tokens);
    plan.task_tokens = SparseAttention::kBlock;
    plan.n_ranges = n_blocks_of(plan.n_tokens);
  }
  plan.max_rows = (plan.task_tokens * plan.n_group + kRowGroup - 1) / kRowGroup * kRowGroup;
  cut(plan, ScratchCutter(nullptr), &plan.thread_bytes);
  return plan;
}

/// Calls f(r, token, q_head) for each row r, tokens [begin, end) x group.
template <typename F>
void for_rows(const Plan& plan, int64_t head, int64_t begin, int64_t end, F f) {
  int64_t r = 0;
  for (int64_t token = begin; token < end; ++token) {
    for (int64_t q_head = head * plan.n_group; q_head < (head + 1) * plan.n_group; ++q_head) {
      f(r++, token, q_head);
    }
  }
}

/// Packs the rows' queries, padded with copies of the last one.
void load_queries(const Plan& plan, const PrefillAttention& a, int64_t head, int64_t begin,
                  int64_t end, int64_t n_padded, const Workspace& w) {
  const int64_t row = plan.head_dim * plan.tile->element_bytes;  // bytes
  for_rows(plan, head, begin, end, [&](int64_t r, int64_t token, int64_t q_head) {
    plan.tile->pack_q(a.q.at<float>(token, q_head), plan.head_dim, a.scale * kLog2E, w.q + r * row);
  });
  for (int64_t r = (end - begin) * plan.n_group; r < n_padded; ++r) {
    char* q = w.q + r * row;
    std::copy(q - row, q, q);
  }
}

/// Starts the running softmaxes: empty, or with a sink.
void init_softmax(const Plan& plan, const PrefillAttention& a, int64_t head, int64_t begin,
                  int64_t end, int64_t n_padded, const Workspace& w) {
  std::fill(w.max, w.max + n_padded, -std::numeric_limits<float>::infinity());
  std::fill(w.sum, w.sum + n_padded, 0.0f);
  if (a.variant.sinks) {
    for_rows(plan, head, begin, end, [&](int64_t r, int64_t, int64_t q_head) {
      w.max[r] = *a.variant.sinks.at<const float>(q_head) * kLog2E;
      w.sum[r] = 1.0f;
    });
  }
  // If a window may begin after the first block, no block is the first one for all rows.
  if (a.variant.window > 0) std::fill(w.acc, w.acc + n_padded * padded_dim(plan.value_dim), 0.0f);
}

/// Counts which of the columns [first, first + n_cols) each row sees. `window`:
/// AttentionVariant::window.
void count_visible(const Plan& plan, int64_t n_past, int64_t window, int64_t begin, int64_t end,
                   int64_t n_padded, int64_t first, int64_t n_cols, const Workspace& w) {
  int32_t hidden = 0, visible = 0;
  const auto clamped = [n_cols](int64_t n) {
    return static_cast<int32_t>(std::clamp<int64_t>(n, 0, n_cols));
  };
  for_rows(plan, 0, begin, end, [&](int64_t r, int64_t token, int64_t) {
    visible = clamped(n_past + token + 1 - first);
    hidden = window > 0 ? clamped(n_past + token + 1 - window - first) : 0;
    w.n_visible[r] = visible;
    w.n_hidden[r] = hidden;
  });
  const int64_t n_rows = (end - begin) * plan.n_group;
  std::fill(w.n_visible + n_rows, w.n_visible + n_padded, visible);
  std::fill(w.n_hidden + n_rows, w.n_hidden + n_padded, hidden);
}

/// out = acc / sum. Every row sees its own key, so its sum is at least 1.
void store_output(const Plan& plan, const PrefillAttention& a, int64_t head, int64_t begin,
                  int64_t end, const Workspace& w) {
  const int width = padded_dim(plan.value_dim);
  for_rows(plan, head, begin, end, [&](int64_t r, int64_t token, int64_t q_head) {
    plan.tile->store(w.acc + r * width, plan.value_dim, 1.0f / w.sum[r], a.out.dtype,
                     a.out.at<char>(token, q_head));
  });
}

/// The same for the rows of chosen blocks: columns that a row does not see come last.
void count_chosen(const Plan& plan, int64_t n_past, int64_t begin, int64_t end, int64_t n_padded,
                  std::span<const int32_t> blocks, int n_cols, const Workspace& w) {
  constexpr int64_t kBlock = SparseAttention::kBlock;
  int32_t visible = 0;
  for_rows(plan, 0, begin, end, [&](int64_t r, int64_t token, int64_t) {
    int64_t n = 0;
    for (const int32_t b : blocks) {
      n += std::clamp<int64_t>(n_past + token + 1 - b * kBlock, 0, kBlock);
    }
    visible = static_cast<int32_t>(std::min<int64_t>(n, n_cols));
    w.n_visible[r] = visible;
  });
  const int64_t n_rows = (end - begin) * plan.n_group;
  std::fill(w.n_visible + n_rows, w.n_visible + n_padded, visible);
  std::fill(w.n_hidden, w.n_hidden + n_padded, 0);
}

KvRows block_of(const Tensor& x, int64_t head, int64_t first, int n_rows, int head_dim) {
  return {x.at<char>(head, first), x.stride[1], x.dtype, n_rows, head_dim};
}

/// Copies the rows of blocks together, up to row n_kv.
KvRows gather_blocks(const Tensor& x, int64_t head, std::span<const int32_t> blocks, int64_t n_kv,
                     int head_dim, char* memory) {
  constexpr int64_t kBlock = SparseAttention::kBlock;
  const int64_t bytes = head_dim * block_bytes(x.dtype);
  KvRows rows = {memory, bytes, x.dtype, 0, head_dim};
  for (const int32_t b : blocks) {
    for (int64_t j = b * kBlock; j < std::min(n_kv, (b + 1) * kBlock); ++j) {
      std::memcpy(memory + rows.n_rows++ * bytes, x.at<char>(head, j), bytes);
    }
  }
  return rows;
}

/// Attends to the rows of the chosen blocks.
void attend_chosen(const Plan& plan, const PrefillAttention& a, int64_t head, int64_t begin,
                   int64_t end, std::span<const int32_t> chosen, QueryRows& rows,
                   const Workspace& w) {
  const int64_t n_past = a.n_past[head];
  const size_t n_together = plan.block_rows / SparseAttention::kBlock;
  for (size_t i = 0; i < chosen.size(); i += n_together) {
    const auto blocks = chosen.subspan(i, std::min(n_together, chosen.size() - i));
    const KvRows k = gather_blocks(a.k, head, blocks, n_past + end, plan.head_dim, w.k_rows);
    plan.tile->pack_k(k, w.k);
    const KvRows v = gather_blocks(a.v, head, blocks, n_past + end, plan.value_dim, w.v_rows);
    plan.tile->pack_v(v, w.v);
    count_chosen(plan, n_past, begin, end, rows.n_rows, blocks, k.n_rows, w);
    rows.first = i == 0;
    plan.tile->attend(rows, w.k, w.v, k.n_rows, w.scratch);
  }
}

void attend_range(const Plan& plan, const PrefillAttention& a, int64_t head, int64_t range,
                  const Workspace& w, const float* means, const ChoiceSpace* choice) {
  const int64_t begin = range * plan.task_tokens;
  const int64_t end = std::min(begin + plan.task_tokens, plan.n_tokens);
  const int64_t n_rows = (end - begin) * plan.n_group;
  const int64_t n_padded = (n_rows + kRowGroup - 1) / kRowGroup * kRowGroup;
  load_queries(plan, a, head, begin, end, n_padded, w);
  init_softmax(plan, a, head, begin, end, n_padded, w);
  QueryRows rows{.q = w.q,
                 .n_hidden = w.n_hidden,
                 .n_visible = w.n_visible,
                 .n_rows = static_cast<int>(n_padded),
                 .head_dim = plan.head_dim,
                 .value_dim = plan.value_dim,
                 .softcap = a.variant.softcap,
                 .max = w.max,
                 .sum = w.sum,
                 .acc = w.acc};
  const int64_t n_past = a.n_past[head], window = a.variant.window;
  const int64_t n_kv = n_past + end;  // up to the row of the last token
  if (choice != nullptr) {
    const QueryBlock block = {.head = head, .begin = begin, .end = end, .n_rows = n_kv};
    const int64_t n_chosen =
        choose_blocks(a, block, means + head * plan.n_kv_blocks * plan.head_dim, *choice, w.chosen);
    attend_chosen(plan, a, head, begin, end, {w.chosen, static_cast<size_t>(n_chosen)}, rows, w);
    return store_output(plan, a, head, begin, end, w);
  }
  // Blocks before the first token's window are skipped.
  const int64_t first_row = window > 0 ? std::max<int64_t>(0, n_past + begin + 1 - window) : 0;
  for (int64_t first = first_row / plan.block_rows * plan.block_rows; first < n_kv;
       first += plan.block_rows) {
    const int n_cols = static_cast<int>(std::min<int64_t>(plan.block_rows, n_kv - first));
    const KvRows k = block_of(a.k, head, first, n_cols, plan.head_dim);
    const KvRows v = block_of(a.v, head, first, n_cols, plan.value_dim);
    prefetch(k);
    prefetch(v);
    plan.tile->pack_k(k, w.k);
    plan.tile->pack_v(v, w.v);
    count_visible(plan, n_past, window, begin, end, n_padded, first, n_cols, w);
    rows.first = first == 0 && window == 0;
    plan.tile->attend(rows, w.k, w.v, n_cols, w.scratch);
  }
  store_output(plan, a, head, begin, end, w);
}

/// Number of threads that compute a call's tasks.
int threads_of(const CpuContext& ctx, const Plan& plan, const PrefillAttention& a) {
  return team_size(ctx, a.k.shape[0] * plan.n_ranges > 1);
}

}  // namespace

namespace {

/// Sparse attention's memory: the means of all heads' blocks, then what each thread needs.
struct SparseBytes {
  SparseBytes(const Plan& plan, const PrefillAttention& a) {
    if (plan.n_kv_blocks == 0) return;
    ScratchCutter cutter(nullptr);
    const ChoiceSpace space(a, plan.n_kv_blocks, cutter);
    of_thread = cutter.used();
    ScratchCutter shared(nullptr);
    shared.take<float>(a.k.shape[0] * plan.n_kv_blocks * plan.head_dim);
    means = shared.used();
  }
  size_t means = 0, of_thread = 0;
};

/// The means of each head's blocks, [n_head_kv, n_kv_blocks, head_dim].
void compute_means(const Plan& plan, const PrefillAttention& a, float* means) {
  const int64_t n_all = a.k.shape[0] * plan.n_kv_blocks;
#pragma omp for schedule(static)
  for (int64_t i = 0; i < n_all; ++i) {
    const int64_t head = i / plan.n_kv_blocks, b = i % plan.n_kv_blocks;
    const int64_t n_rows = a.n_past[head] + plan.n_tokens;
    if (b < n_blocks_of(n_rows)) mean_keys(a.k, head, b, n_rows, means + i * plan.head_dim);
  }
}

}  // namespace

size_t attention_prefill_workspace(const CpuContext& ctx, const PrefillAttention& a) {
  const Plan plan = make_plan(ctx, a);
  const SparseBytes sparse(plan, a);
  return sparse.means + (plan.thread_bytes + sparse.of_thread) * threads_of(ctx, plan, a);
}

void attention_prefill(const CpuContext& ctx, const PrefillAttention& a) {
  const int64_t n_head_kv = a.k.shape[0];
  if (a.q.shape[0] == 0 || n_head_kv == 0) return;
  SNAPKV_CHECK(a.q.shape[2] % 8 == 0 && a.v.shape[2] % 8 == 0);  // whole vectors
  const Plan plan = make_plan(ctx, a);
  const int64_t n_tasks = n_head_kv * plan.n_ranges;
  const int n_threads = threads_of(ctx, plan, a);
  char* memory = scratch(attention_prefill_workspace(ctx, a));
  const SparseBytes sparse(plan, a);
  float* const means = reinterpret_cast<float*>(memory);
#pragma omp parallel num_threads(n_threads)
  {
    const size_t own = omp_get_thread_num() * (plan.thread_bytes + sparse.of_thread);
    char* const of_thread = memory + sparse.means + own;
    const Workspace w = cut(plan, ScratchCutter(of_thread));
    std::optional<ChoiceSpace> choice;
    if (plan.n_kv_blocks > 0) {
      ScratchCutter cutter(of_thread + plan.thread_bytes);
      choice.emplace(a, plan.n_kv_blocks, cutter);
      compute_means(plan, a, means);
    }
    // The last tokens see the most rows, so their tasks take longest and are started first.
#pragma omp for schedule(dynamic, 1)
    for (int64_t i = 0; i < n_tasks; ++i) {
      attend_range(plan, a, i % n_head_kv, plan.n_ranges - 1 - i / n_head_kv, w, means,
                   choice ? &*choice : nullptr);
    }
  }
}

}  // namespace snapkv::cpu
