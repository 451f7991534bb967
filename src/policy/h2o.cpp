// SPDX-License-Identifier: MIT
// Policy "h2o" (Zhang et al., arXiv 2306.14048): "heavy hitters", the rows that collected most
// attention over all queries of the prompt (the plain sum, which favours old rows), and the recent
// ones: the window. The paper gives half of the budget to each: set window_size to budget / 2. It
// evicts token by token; here the sums are those of full attention, and rows are dropped once, at
// the prompt's end. The sums are gathered chunk by chunk and no attention matrix exists, but every
// score is computed again, twice: prefill's attention costs up to three times as much. A later turn
// sums over its own queries only. Made by the registry.
#include <algorithm>
#include <memory>

#include "backend/ops.h"
#include "base/check.h"
#include "base/error.h"
#include "policy/host_rows.h"
#include "policy/policy_registry.h"
#include "policy/score_policy.h"

namespace snapkv {
namespace {

/// Queries of one op: its memory grows with them.
constexpr int64_t kQueries = 128;

class AttentionSums final : public QueryObserver {
 public:
  explicit AttentionSums(GroupReduce group) : group_(group) {}

  void observe(Backend& backend, const QueryChunk& chunk) override {
    const int64_t n = chunk.q.shape[0];
    n_queries_ += static_cast<double>(n);
    for (int64_t begin = 0; begin < n; begin += kQueries) {
      const int64_t end = std::min(n, begin + kQueries);
      add(backend, chunk, begin, end);
    }
  }

  /// Of rows [0, n) of head h.
  std::vector<float> sums(size_t h, int32_t n) const {
    return {sums_[h].begin(), sums_[h].begin() + n};
  }
  double n_queries() const { return n_queries_; }
  bool covers(std::span<const int32_t> n_rows) const {
    return std::equal(
        sums_.begin(), sums_.end(), n_rows.begin(), n_rows.end(),
        [](const auto& sums, int32_t n) { return static_cast<int64_t>(sums.size()) == n; });
  }

 private:
  void add(Backend& backend, const QueryChunk& chunk, int64_t begin, int64_t end) {
    const int32_t n_after = static_cast<int32_t>(chunk.q.shape[0] - end);
    std::vector<int32_t> n_rows;  // up to query end - 1
    for (int32_t rows : chunk.n_rows) n_rows.push_back(rows - n_after);
    const int64_t n_head_kv = chunk.k.shape[0];
    const int64_t n_cols = *std::max_element(n_rows.begin(), n_rows.end());
    const Buffer storage =
        backend.allocate(static_cast<size_t>(n_head_kv * n_cols) * sizeof(float), "votes");
    const Tensor votes = storage.view(DType::f32, {n_head_kv, n_cols});
    ops::window_votes(backend, {.q = chunk.q.slice(begin, end),
                                .k = chunk.k,
                                .n_rows = n_rows,
                                .scale = chunk.scale,
                                .group = group_,
                                .votes = votes,
                                .whole = true,
                                .variant = chunk.variant});
    sums_.resize(n_rows.size());
    for (size_t h = 0; h < n_rows.size(); ++h) {
      const std::vector<float> row =
          read_scores(backend, votes, static_cast<int64_t>(h), n_rows[h]);
      sums_[h].resize(row.size(), 0.0);
      for (size_t j = 0; j < row.size(); ++j) sums_[h][j] += row[j];
    }
  }

  GroupReduce group_;
  double n_queries_ = 0;
  std::vector<std::vector<double>> sums_;  // [n_head_kv][rows so far]
};

class H2oPolicy final : public ScorePolicy {
 public:
  explicit H2oPolicy(const PolicyConfig& config) : ScorePolicy(config, {.is_attention = true}) {}

  std::unique_ptr<QueryObserver> make_observer(int) const override {
    return std::make_unique<AttentionSums>(config().group);
  }

 private:
  double n_queries(const PolicyInput& input) const override {
    return dynamic_cast<const AttentionSums&>(*input.observer).n_queries();
  }

  void score(Backend& backend, const PolicyInput& input, std::span<const int32_t> n_prefix,
             const Tensor& scores) const override {
    const auto* sums = dynamic_cast<const AttentionSums*>(input.observer);
    if (sums == nullptr) {
      fail(ErrorCode::kUsage,
           "policy \"h2o\" needs every query of the prompt, and here only the window's are known");
    }
    SNAPKV_CHECK(sums->covers(input.n_rows));
    for (size_t h = 0; h < n_prefix.size(); ++h) {
      write_scores(backend, scores, static_cast<int64_t>(h), sums->sums(h, n_prefix[h]));
    }
  }
};

}  // namespace

std::unique_ptr<Policy> make_h2o(const PolicyConfig& config) {
  return std::make_unique<H2oPolicy>(config);
}

}  // namespace snapkv
