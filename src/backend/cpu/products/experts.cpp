// SPDX-License-Identifier: MIT
// project_experts(): the networks of the chosen experts, by the kernels of project() or of
// project_packed(). Tokens are sorted by expert first.
//
// Few rows of each expert: one parallel region for the first matrices of all chosen experts and one
// for their last ones. Some rows: the same by ExpertRows. Many rows: one expert after another, each
// of whose products is divided among the threads. For interleaved weights all give the same bits.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/products/few_rows/expert_rows.h"
#include "backend/cpu/products/few_rows/gemv.h"
#include "backend/cpu/products/few_rows/project_rows.h"
#include "backend/cpu/weights/interleaved_weights.h"
#include "base/per_thread.h"

namespace snapkv::cpu {
namespace {

/// The chosen experts of all tokens, sorted by expert, then by token.
class SortedTokens {
 public:
  explicit SortedTokens(const ExpertProducts& p)
      : n_expert_(std::ssize(p.experts)),
        n_rows_(p.weights.numel()),
        begin_(p.memory.order.at<int32_t>(0)),
        tokens_(begin_ + n_expert_ + 1),
        factors_(p.memory.factors.at<float>(0)) {
    const auto* chosen = static_cast<const int32_t*>(p.chosen.data);
    const auto* weights = static_cast<const float*>(p.weights.data);
    std::fill_n(begin_, n_expert_ + 1, 0);
    for (int64_t i = 0; i < n_rows_; ++i) ++begin_[chosen[i] + 1];
    for (int64_t e = 0; e < n_expert_; ++e) begin_[e + 1] += begin_[e];
    // begin_[e] is where the next token of e goes, and in the end where those of e + 1 begin
    for (int64_t i = 0; i < n_rows_; ++i) {
      const int64_t at = begin_[chosen[i]]++;
      tokens_[at] = static_cast<int32_t>(i / p.weights.shape[1]);
      factors_[at] = p.factor * weights[i];
    }
    std::copy_backward(begin_, begin_ + n_expert_, begin_ + n_expert_ + 1);
    begin_[0] = 0;
  }

  int64_t n_rows() const { return n_rows_; }
  /// The tokens of an expert are [begin(expert), begin(expert + 1)).
  int64_t begin(int64_t expert) const { return begin_[expert]; }
  std::span<const int32_t> tokens(int64_t begin, int64_t end) const {
    return {tokens_ + begin, tokens_ + end};
  }
  std::span<const float> factors(int64_t begin, int64_t end) const {
    return {factors_ + begin, factors_ + end};
  }

 private:
  const int64_t n_expert_, n_rows_;
  int32_t* const begin_;   // [n_expert + 1]
  int32_t* const tokens_;  // [n_rows]
  float* const factors_;   // [n_rows]
};

/// The rows of x that belong to these tokens, in p.memory; or x itself if they are all.
Tensor gather(const CpuContext& ctx, const ExpertProducts& p, std::span<const int32_t> tokens) {
  const int64_t n = std::ssize(tokens), bytes = row_bytes(p.x.dtype, p.x.shape[1]);
  if (n == p.x.shape[0] && std::is_sorted(tokens.begin(), tokens.end()) &&
      std::adjacent_find(tokens.begin(), tokens.end()) == tokens.end()) {
    return p.x;
  }
  const Tensor to = p.memory.x.slice(0, n);
  constexpr int64_t kParallelBytes = 64 * 1024;
#pragma omp parallel for num_threads(ctx.n_threads) if (n * bytes >= kParallelBytes)
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(to.at<char>(i), p.x.at<const char>(tokens[i]), static_cast<size_t>(bytes));
  }
  return to;
}

// ---------------------------------------------------------------- few rows

/// The projections of one project_rows() call; kept from call to call, so that decoding allocates
/// nothing.
struct Calls {
  std::vector<Projection> projections;
  std::vector<RowRange> rows;

  void clear() {
    projections.clear();
    rows.clear();
  }
  void add(const Tensor& w, const Tensor& bias, const Tensor& out, RowRange of_x) {
    projections.push_back({.w = w, .bias = bias, .out = out});
    rows.push_back(of_x);
  }
};

/// Calls f(expert, begin, end) for each expert's part of the sorted rows [begin, end).
template <typename F>
void for_each_part(const SortedTokens& sorted, int64_t n_expert, int64_t begin, int64_t end, F f) {
  for (int64_t e = 0; e < n_expert; ++e) {
    const int64_t first = std::max(begin, sorted.begin(e));
    const int64_t last = std::min(end, sorted.begin(e + 1));
    if (first < last) f(e, first, last);
  }
}

/// Rows [begin, end), at most as many as memory has.
void run_few(const CpuContext& ctx, const ExpertProducts& p, const SortedTokens& sorted,
             int64_t begin, int64_t end) {
  static auto& all_calls = *new PerThread<Calls>;
  Calls& calls = all_calls.get();
  const ExpertMemory& m = p.memory;
  const int64_t n_expert = std::ssize(p.experts);
  const bool one = p.x.shape[0] == 1;  // all experts read the same row
  const Tensor x = one ? p.x : gather(ctx, p, sorted.tokens(begin, end));
  calls.clear();
  for_each_part(sorted, n_expert, begin, end, [&](int64_t e, int64_t first, int64_t last) {
    const RowRange own = {first - begin, last - begin}, of_x = one ? RowRange{0, 1} : own;
    const Expert& expert = p.experts[e];
    if (expert.gate) {
      calls.add(expert.gate, expert.gate_bias, m.gate.slice(own.begin, own.end), of_x);
    }
    calls.add(expert.up, expert.up_bias, m.up.slice(own.begin, own.end), of_x);
  });
  project_rows(ctx, x, calls.projections, calls.rows);
  activate_experts(ctx, p, end - begin);
  calls.clear();
  for_each_part(sorted, n_expert, begin, end, [&](int64_t e, int64_t first, int64_t last) {
    const RowRange own = {first - begin, last - begin};
    calls.add(p.experts[e].down, p.experts[e].down_bias, m.out.slice(own.begin, own.end), own);
  });
  project_rows(ctx, m.act.slice(0, end - begin), calls.projections, calls.rows);
  for_each_part(sorted, n_expert, begin, end, [&](int64_t, int64_t first, int64_t last) {
    add_rows(ctx, p.out, m.out.slice(first - begin, last - begin), sorted.tokens(first, last),
             sorted.factors(first, last));
  });
}

/// Whether experts have more rows than one call of a kernel multiplies, most of them: only then is
/// there something to gain from ExpertRows (with 4 rows each it takes as long, with 2 longer).
bool reuses_weights(const ExpertProducts& p, const SortedTokens& sorted, int64_t begin,
                    int64_t end) {
  int64_t n_chosen = 0;
  for_each_part(sorted, std::ssize(p.experts), begin, end,
                [&](int64_t, int64_t, int64_t) { ++n_chosen; });
  return end - begin > kGemvMaxRows * n_chosen;
}

/// Rows [begin, end) by ExpertRows: as many experts at a time as memory has rows for.
void run_some(const CpuContext& ctx, const ExpertProducts& p, const SortedTokens& sorted,
              int64_t begin, int64_t end) {
  const int64_t m = p.memory.up.shape[0];
  std::vector<ExpertPart> together;
  int64_t first = begin, row = begin;
  const auto run = [&] {
    if (first == row) return;
    ExpertRows(ctx, p, together, {sorted.tokens(first, row), sorted.factors(first, row)}).run();
    together.clear();
    first = row;
  };
  for_each_part(sorted, std::ssize(p.experts), begin, end, [&](int64_t e, int64_t, int64_t last) {
    while (row < last) {
      const int64_t n = std::min({m, kMostExpertRows, last - row});
      if (row + n - first > m) run();
      together.push_back({&p.experts[e], row - first, row - first + n});
      row += n;
    }
  });
  run();
}

// ---------------------------------------------------------------- many rows

PackedWeight packed_at_use(const CpuContext& ctx, const Tensor& w, PackWorkspace* workspace) {
  PackedWeight packed;
  packed.workspace = workspace;
  lay_out(ctx, w, packed);
  return packed;
}

/// Some of an expert's tokens, at most as many as memory has rows.
void run_many(const CpuContext& ctx, const ExpertProducts& p, const Expert& expert,
              std::span<const int32_t> tokens, std::span<const float> factors) {
  const ExpertMemory& m = p.memory;
  const int64_t n = std::ssize(tokens);
  const Tensor x = gather(ctx, p, tokens);
  const auto multiply = [&](const Tensor& in, const Tensor& w, const Tensor& bias,
                            const Tensor& out) {
    project_packed(ctx, in, packed_at_use(ctx, w, p.workspace), bias, out.slice(0, n), false);
  };
  if (expert.gate) multiply(x, expert.gate, expert.gate_bias, m.gate);
  multiply(x, expert.up, expert.up_bias, m.up);
  activate_experts(ctx, p, n);
  multiply(m.act.slice(0, n), expert.down, expert.down_bias, m.out);
  add_rows(ctx, p.out, m.out.slice(0, n), tokens, factors);
}

/// One of the weights of each type that there is.
std::vector<Tensor> weights_of_each_type(std::span<const Expert> experts, bool down) {
  std::vector<Tensor> weights;
  for (const Expert& e : experts) {
    for (const Tensor& w : down ? std::array{e.down, Tensor()} : std::array{e.gate, e.up}) {
      const bool is_known = std::any_of(weights.begin(), weights.end(),
                                        [&](const Tensor& t) { return t.dtype == w.dtype; });
      if (w && !is_known) weights.push_back(w);
    }
  }
  return weights;
}

/// Whether the products of few rows are those of many.
bool rounds_alike(const CpuContext& ctx, const ExpertProducts& p) {
  return std::all_of(p.experts.begin(), p.experts.end(), [&](const Expert& e) {
    return (!e.gate || interleaves(ctx, e.gate.dtype)) && interleaves(ctx, e.up.dtype) &&
           interleaves(ctx, e.down.dtype);
  });
}

}  // namespace

size_t project_experts_workspace(const CpuContext& ctx, const ExpertProducts& p) {
  size_t most = 0;
  for (const bool down : {false, true}) {
    const Tensor& x = down ? p.memory.act : p.memory.x;
    const Tensor& out = down ? p.memory.out : p.memory.up;
    std::vector<Projection> projections;
    for (const Tensor& w : weights_of_each_type(p.experts, down)) {
      projections.push_back({.w = w, .bias = {}, .out = out});
      if (p.workspace == nullptr) continue;
      most = std::max(most, project_packed_workspace(ctx, x, packed_at_use(ctx, w, p.workspace), {},
                                                     out, false));
    }
    if (p.workspace == nullptr || rounds_alike(ctx, p)) {
      most = std::max(most, project_workspace(ctx, x, projections));
    }
  }
  if (p.workspace != nullptr && rounds_alike(ctx, p) && has_expert_rows(ctx)) {
    most = std::max(most, ExpertRows::workspace(ctx, p));
  }
  return most;
}

void project_experts(const CpuContext& ctx, const ExpertProducts& p) {
  const SortedTokens sorted(p);
  const int64_t m = p.memory.x.shape[0];
  const auto run_together = [&](int64_t begin, int64_t end) {
    if (begin == end) return;
    if (p.workspace != nullptr && has_expert_rows(ctx) && reuses_weights(p, sorted, begin, end)) {
      return run_some(ctx, p, sorted, begin, end);
    }
    for (; begin < end; begin += m) run_few(ctx, p, sorted, begin, std::min(begin + m, end));
  };
  if (p.workspace == nullptr) return run_together(0, sorted.n_rows());
  const bool any_way = rounds_alike(ctx, p);
  int64_t done = 0;  // rows
  for (int64_t e = 0; e < std::ssize(p.experts); ++e) {
    if (any_way && sorted.begin(e + 1) - sorted.begin(e) <= kMostExpertRows) continue;
    run_together(done, sorted.begin(e));
    done = sorted.begin(e + 1);
    for (int64_t begin = sorted.begin(e); begin < sorted.begin(e + 1); begin += m) {
      const int64_t end = std::min(begin + m, sorted.begin(e + 1));
      run_many(ctx, p, p.experts[e], sorted.tokens(begin, end), sorted.factors(begin, end));
    }
  }
  run_together(done, sorted.n_rows());
}

}  // namespace snapkv::cpu
