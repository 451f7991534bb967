// SPDX-License-Identifier: MIT
// Policy "snapkv-max": SnapKV (arXiv 2404.14469) with two changes that help with questions about
// real texts (docs/quality.md).
//
// A row's vote is the strongest attention that any query of the window, in any query head of the
// group, gives it; SnapKV adds them up. Rows that an answer needs are often seen by only one query
// of one head, and in a sum they are lost among rows that all queries look at a little.
//
// Half of the rows are those with the highest votes of their own, the other half those with the
// highest pooled votes. Attention sinks and separators need no neighbours, a fact of several tokens
// needs all of them, and no single pooling width serves both.
//
// The window sees a value of many tokens, such as a UUID, only where it begins; the rest of it must
// be among the neighbours. So the pooling width grows with the budget, which then has room for
// them, unless somebody says how wide it is.
//
// The window is kept whole, and much of it is the end of the chat template, whatever the question
// asks. So it takes at most an eighth of a small budget, unless somebody says how long it is.
//
// With `least_attention` the budget is what a head keeps at most: it keeps the rows whose votes are
// at least that share of a query's attention, and those near a vote of twice as much. How many that
// are depends on the question, and hardly on the prompt's length: at most 1 / least_attention rows
// have so much of one query's attention.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "policy/policy_registry.h"
#include "policy/votes.h"

namespace snapkv {
namespace {

struct SnapKvMaxParams : RowParams {
  SnapKvMaxParams() { window_size = 16; }
  int kernel_size = 63;
  double own_share = 0.5;
  double least_attention = 0.0;
};

int kernel_for(const SnapKvMaxParams& params) {
  if (params.ratio > 0 || params.budget < 256) return 15;
  return params.budget < 512 ? 31 : 63;
}

void settle(SnapKvMaxParams& params, const PolicyConfig& config) {
  if (config.window_size <= 0 && params.ratio == 0) {
    params.window_size = static_cast<int>(std::clamp<int64_t>(params.budget / 8, 4, 16));
  }
  if (!config.params.contains("kernel_size")) params.kernel_size = kernel_for(params);
}

class SnapKvMaxSelector final : public Selector<SnapKvMaxParams> {
 public:
  using Selector::Selector;

 private:
  void score(const ScoreInput& input, const Tensor& scores) override {
    votes_ = Floats(backend(), {scores.shape[0], scores.shape[1]}, "votes");
    ops::window_votes(backend(), {.q = input.q_window,
                                  .k = input.k,
                                  .n_rows = input.n_rows,
                                  .scale = input.scale,
                                  .group = GroupReduce::max,
                                  .votes = votes_,
                                  .variant = input.variant,
                                  .reduce = VoteReduce::max});
    ops::pool(backend(), votes_, input.n_prefix, params().kernel_size, Pooling::max, scores);
    if (params().least_attention > 0.0) combine(input, scores);
  }

  /// Scores become the larger of a row's vote and half of its pooled one; counts those that are
  /// large enough.
  void combine(const ScoreInput& input, const Tensor& scores) {
    n_attended_.clear();
    for (int64_t h = 0; h < std::ssize(input.n_prefix); ++h) {
      const int32_t n = input.n_prefix[h];
      const Buffer storage = backend().allocate_host(2 * n * sizeof(float), "votes on the host");
      n_attended_.push_back(n);
      if (!backend().computes()) continue;
      auto* const votes = static_cast<float*>(storage.data());
      float* const pooled = votes + n;
      backend().download(votes, votes_.view.at<const void>(h), n * sizeof(float));
      backend().download(pooled, scores.at<const void>(h), n * sizeof(float));
      for (int32_t i = 0; i < n; ++i) {
        if (votes[i] < pooled[i] / 2) votes[i] = pooled[i] / 2;  // a NaN stays
      }
      const auto least = static_cast<float>(params().least_attention);
      n_attended_[h] = static_cast<int32_t>(
          std::count_if(votes, votes + n, [least](float vote) { return vote >= least; }));
      backend().upload(scores.at<void>(h), votes, n * sizeof(float));
    }
  }

  std::vector<int32_t> prefix_budgets(const ScoreInput& input, const Tensor& scores,
                                      int64_t budget) override {
    std::vector<int32_t> k = Selector::prefix_budgets(input, scores, budget);
    if (params().least_attention == 0.0) return k;
    SNAPKV_CHECK(n_attended_.size() == k.size());
    for (size_t h = 0; h < k.size(); ++h) {
      k[h] = std::min(k[h], std::max(n_attended_[h], params().sinks));
    }
    return k;
  }

  void reweigh(const ScoreInput& input, std::span<const int32_t> k, const Tensor& scores) override {
    if (params().least_attention == 0.0) put_own_first(input, k, scores);
    votes_ = Floats();
  }

  /// Ranks the rows with the highest votes of their own before all others.
  void put_own_first(const ScoreInput& input, std::span<const int32_t> k, const Tensor& scores) {
    std::vector<int32_t> n_own;
    for (int32_t n : k) n_own.push_back(static_cast<int32_t>(std::floor(n * params().own_share)));
    const int64_t n_head = std::ssize(k);
    const int64_t most = std::max<int32_t>(1, *std::max_element(n_own.begin(), n_own.end()));
    const Buffer storage = backend().allocate(n_head * most * sizeof(int32_t), "rows");
    const Tensor rows = storage.view(DType::i32, {n_head, most});
    ops::top_k(backend(), votes_, input.n_prefix, n_own, 0, rows);
    ops::set_scores(backend(), scores, rows, n_own, std::numeric_limits<float>::infinity());
  }

  Floats votes_;                     // [n_head_kv, max(n_prefix)], kept from score() to reweigh()
  std::vector<int32_t> n_attended_;  // by head: rows with the least attention; all in a dry run
};

}  // namespace

PolicyDefinition snapkv_max_policy() {
  return define_policy<ScorePolicy<SnapKvMaxSelector>>(
      {.name = "snapkv-max",
       .score =
           "strongest attention of any query of the window; half of the rows by it alone, half "
           "by it pooled",
       .paper = "2404.14469",
       .reads = "window, keys"},
      join<SnapKvMaxParams>(
          row_fields(),
          Fields<SnapKvMaxParams>{
              kernel_field(&SnapKvMaxParams::kernel_size),
              field(&SnapKvMaxParams::own_share,
                    {.name = "own_share",
                     .help = "Share of the rows that are chosen by their own votes, not pooled",
                     .least = 0,
                     .most = 1}),
              field(&SnapKvMaxParams::least_attention,
                    {.name = "least_attention",
                     .help = "Keep only rows with this share of a query's attention, and their "
                             "neighbours; the budget is the most. 0: the budget alone",
                     .least = 0,
                     .most = 1})}));
}

}  // namespace snapkv
