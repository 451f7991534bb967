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
// The window is kept whole, and much of it is the end of the chat template, whatever the question
// asks. So it takes at most an eighth of a small budget, unless somebody says how long it is.
#include <algorithm>
#include <cmath>
#include <limits>

#include "policy/policy_registry.h"
#include "policy/votes.h"

namespace snapkv {
namespace {

struct SnapKvMaxParams : RowParams {
  SnapKvMaxParams() { window_size = 16; }
  int kernel_size = 15;
  double own_share = 0.5;
};

void settle(SnapKvMaxParams& params, const PolicyConfig& config) {
  if (config.window_size > 0 || params.ratio > 0) return;
  params.window_size = static_cast<int>(std::clamp<int64_t>(params.budget / 8, 4, 16));
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
  }

  /// Ranks the rows with the highest votes of their own before all others.
  void reweigh(const ScoreInput& input, std::span<const int32_t> k, const Tensor& scores) override {
    std::vector<int32_t> n_own;
    for (int32_t n : k) n_own.push_back(static_cast<int32_t>(std::floor(n * params().own_share)));
    const int64_t n_head = std::ssize(k);
    const int64_t most = std::max<int32_t>(1, *std::max_element(n_own.begin(), n_own.end()));
    const Buffer storage = backend().allocate(n_head * most * sizeof(int32_t), "rows");
    const Tensor rows = storage.view(DType::i32, {n_head, most});
    ops::top_k(backend(), votes_, input.n_prefix, n_own, 0, rows);
    ops::set_scores(backend(), scores, rows, n_own, std::numeric_limits<float>::infinity());
    votes_ = Floats();
  }

  Floats votes_;  // [n_head_kv, max(n_prefix)], kept from score() to reweigh()
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
                     .most = 1})}));
}

}  // namespace snapkv
