// SPDX-License-Identifier: MIT
// Policy "h2o" (Zhang et al., arXiv 2306.14048): keeps "heavy hitters", the rows with the most
// attention over all queries of the prompt (the plain sum, which favours old rows), and the recent
// rows: the window. The paper gives each half of the budget: set window_size to budget / 2. It
// evicts token by token; here the sums are those of full attention, and rows are dropped once, at
// the prompt's end. The sums are collected chunk by chunk without an attention matrix, but every
// score is computed again, twice: prefill's attention costs up to three times as much. A later turn
// sums over its own queries only.
#include <algorithm>

#include "base/check.h"
#include "policy/policy_registry.h"
#include "policy/votes.h"

namespace snapkv {
namespace {

/// Queries per op, whose memory grows with them.
constexpr int64_t kQueries = 128;

struct H2oParams : RowParams, GroupParams, CriticalParams {};

class H2oSelector final : public AttentionSelector<H2oParams> {
 public:
  using AttentionSelector::AttentionSelector;

 private:
  double n_queries(const ScoreInput&) const override { return static_cast<double>(n_queries_); }

  void gather(const QueryChunk& chunk) override {
    const int64_t n = chunk.q.shape[0];
    n_queries_ += n;
    for (int64_t begin = 0; begin < n; begin += kQueries) {
      add(chunk, begin, std::min(n, begin + kQueries));
    }
  }

  void score(const ScoreInput& input, const Tensor& scores) override {
    SNAPKV_CHECK(
        std::equal(n_rows_.begin(), n_rows_.end(), input.n_rows.begin(), input.n_rows.end()));
    for (int64_t h = 0; h < scores.shape[0]; ++h) {
      backend().copy(scores.at<void>(h), sums_.view.at<void>(0, h),
                     input.n_prefix[h] * sizeof(float));
    }
  }

  void add(const QueryChunk& chunk, int64_t begin, int64_t end) {
    const int64_t n_head_kv = chunk.k.shape[0];
    if (!sums_.view) {
      sums_ = Floats(backend(), {2, n_head_kv, chunk.k.shape[1]}, "attention of all queries");
      sums_.set_zero(backend());
    }
    n_rows_.assign(chunk.n_rows.begin(), chunk.n_rows.end());  // rows up to query end - 1
    for (int32_t& n : n_rows_) n -= static_cast<int32_t>(chunk.q.shape[0] - end);
    const int64_t n_cols = *std::max_element(n_rows_.begin(), n_rows_.end());
    const Floats votes(backend(), {n_head_kv, n_cols}, "votes");
    ops::window_votes(backend(), {.q = chunk.q.slice(begin, end),
                                  .k = chunk.k,
                                  .n_rows = n_rows_,
                                  .scale = chunk.scale,
                                  .group = params().group,
                                  .votes = votes,
                                  .whole = true,
                                  .variant = chunk.variant});
    ops::add_scores(backend(), votes, n_rows_, sums_);
  }

  int64_t n_queries_ = 0;
  std::vector<int32_t> n_rows_;  // [n_head_kv], rows that have sums
  Floats sums_;                  // [2, n_head_kv, capacity], see ops::add_scores
};

}  // namespace

PolicyDefinition h2o_policy() {
  return define_policy<ScorePolicy<H2oSelector>>(
      {.name = "h2o",
       .score = "attention summed over all queries of the prompt",
       .paper = "2306.14048",
       .reads = "all queries, keys",
       .observes = true},
      join<H2oParams>(row_fields(), group_fields(), critical_fields()));
}

}  // namespace snapkv
