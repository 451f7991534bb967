// SPDX-License-Identifier: MIT
// Policy "tova" (Oren et al., arXiv 2401.06104): rows the prompt's last query attends to, averaged
// over all heads of the layer; every head keeps the same rows. The paper drops one row per token as
// the text grows; here the rule is applied once, at the prompt's end, as for every policy.
#include <algorithm>

#include "policy/critical.h"
#include "policy/host_rows.h"
#include "policy/policy_registry.h"

namespace snapkv {
namespace {

struct TovaParams : RowParams, CriticalParams {};

class TovaSelector final : public AttentionSelector<TovaParams> {
 public:
  using AttentionSelector::AttentionSelector;

 private:
  double n_queries(const ScoreInput&) const override { return 1; }

  void score(const ScoreInput& input, const Tensor& scores) override {
    const int64_t n_head_kv = scores.shape[0], n_query = input.q_window.shape[0];
    const auto [fewest, most] = std::minmax_element(input.n_rows.begin(), input.n_rows.end());
    const int64_t n_cols = *most - 1;  // rows before the last query's own
    const Buffer storage = backend().allocate(n_head_kv * n_cols * sizeof(float), "votes");
    const Tensor votes = storage.view(DType::f32, {n_head_kv, n_cols});
    ops::window_votes(backend(), {.q = input.q_window.slice(n_query - 1, n_query),
                                  .k = input.k,
                                  .n_rows = input.n_rows,
                                  .scale = input.scale,
                                  .group = GroupReduce::mean,
                                  .votes = votes,
                                  .variant = input.variant});
    // Heads of different lengths (kept by another policy) hold different positions: no average.
    const bool average = *fewest == *most;
    std::vector<double> sum;
    for (int64_t h = 0; h < n_head_kv; ++h) {
      const std::vector<float> row = read_scores(backend(), votes, h, input.n_prefix[h]);
      if (!average) write_scores(backend(), scores, h, row);
      sum.resize(row.size(), 0.0);
      for (size_t j = 0; average && j < row.size(); ++j) sum[j] += row[j];
    }
    if (!average) return;
    std::vector<float> mean;
    for (double v : sum) mean.push_back(static_cast<float>(v / static_cast<double>(n_head_kv)));
    for (int64_t h = 0; h < n_head_kv; ++h) write_scores(backend(), scores, h, mean);
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
