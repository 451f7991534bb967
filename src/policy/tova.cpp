// SPDX-License-Identifier: MIT
// Policy "tova" (Oren et al., arXiv 2401.06104): keeps the rows that the prompt's last query
// attends to, averaged over all heads of the layer; every head keeps the same rows. The paper drops
// one row per token as the text grows; here the rule is applied once, at the prompt's end, as with
// every policy.
#include <algorithm>

#include "policy/critical.h"
#include "policy/policy_registry.h"

namespace snapkv {
namespace {

struct TovaParams : RowParams, CriticalParams {};

class TovaSelector final : public AttentionSelector<TovaParams> {
 public:
  using AttentionSelector::AttentionSelector;

 private:
  // one query, times the number of KV heads if they are averaged
  double n_queries(const ScoreInput& input) const override {
    return is_even(input) ? static_cast<double>(input.n_rows.size()) : 1.0;
  }

  /// Heads of different lengths (from another policy) have different positions and cannot be
  /// averaged.
  static bool is_even(const ScoreInput& input) {
    const auto [fewest, most] = std::minmax_element(input.n_rows.begin(), input.n_rows.end());
    return *fewest == *most;
  }

  void score(const ScoreInput& input, const Tensor& scores) override {
    const int64_t n_head_kv = scores.shape[0], n_query = input.q_window.shape[0];
    const int64_t most = *std::max_element(input.n_rows.begin(), input.n_rows.end());
    const Floats votes(backend(), {n_head_kv, most - 1}, "votes");  // for rows before its own
    ops::window_votes(backend(), {.q = input.q_window.slice(n_query - 1, n_query),
                                  .k = input.k,
                                  .n_rows = input.n_rows,
                                  .scale = input.scale,
                                  .group = GroupReduce::mean,
                                  .votes = votes,
                                  .variant = input.variant});
    const Floats sums(backend(), {2, 1, scores.shape[1]}, "votes of all heads");
    sums.set_zero(backend());
    for (int64_t h = 0; h < n_head_kv && is_even(input); ++h) {
      ops::add_scores(backend(), votes.view.slice(h, h + 1), input.n_prefix.first(1), sums);
    }
    for (int64_t h = 0; h < n_head_kv; ++h) {
      const void* from = is_even(input) ? sums.view.data : votes.view.at<void>(h);
      backend().copy(scores.at<void>(h), from, input.n_prefix[h] * sizeof(float));
    }
  }
};

}  // namespace

PolicyDefinition tova_policy() {
  return define_policy<ScorePolicy<TovaSelector>>(
      {.name = "tova",
       .score = "attention of the last query, mean over all heads",
       .paper = "2401.06104",
       .reads = "last query, keys"},
      join<TovaParams>(row_fields(), critical_fields()));
}

}  // namespace snapkv
