// SPDX-License-Identifier: MIT
#include "policy/score_policy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/ops.h"
#include "base/check.h"
#include "base/error.h"
#include "policy/critical.h"
#include "policy/finite_scores.h"

namespace snapkv {

ScorePolicy::ScorePolicy(const PolicyConfig& config, const ScoreTraits& traits)
    : config_(config), traits_(traits) {
  const PolicyConfig& c = config_;
  if (c.window_size < 1) {
    fail(ErrorCode::kUsage, "window_size is {}; it must be at least 1", c.window_size);
  }
  if (c.kernel_size < 1 || c.kernel_size % 2 == 0) {
    fail(ErrorCode::kUsage, "kernel_size is {}; it must be odd and at least 1", c.kernel_size);
  }
  if (!(c.ratio >= 0.0 && c.ratio <= 1.0)) {  // NaN too
    fail(ErrorCode::kUsage, "ratio is {}; it must be within (0, 1], or 0 to use budget", c.ratio);
  }
  if (c.ratio == 0.0 && c.budget <= c.window_size) {
    fail(ErrorCode::kUsage,
         "budget is {}; it counts the window and must be greater than window_size, which is {}",
         c.budget, c.window_size);
  }
  if (c.sinks < -1) {
    fail(ErrorCode::kUsage, "sinks is {}; it must be at least 0, or -1 for the policy's own",
         c.sinks);
  }
  if (c.ratio == 0.0 && c.budget <= static_cast<int64_t>(c.window_size) + n_sink()) {
    fail(ErrorCode::kUsage,
         "budget is {}; it counts the window and the sinks and must be greater than window_size + "
         "sinks, which are {} and {}",
         c.budget, c.window_size, n_sink());
  }
  if (c.critical && !traits.is_attention) {
    fail(ErrorCode::kUsage,
         "critical weighs attention, and policy \"{}\" does not rank rows by their own attention",
         c.name);
  }
  if (c.chunk_length < 1) {
    fail(ErrorCode::kUsage, "chunk_length is {}; it must be at least 1", c.chunk_length);
  }
  if (c.n_future < 1) {
    fail(ErrorCode::kUsage, "n_future is {}; it must be at least 1", c.n_future);
  }
  if (!(c.head_floor >= 0.0 && c.head_floor <= 1.0)) {
    fail(ErrorCode::kUsage, "head_floor is {}; it must be within 0 and 1", c.head_floor);
  }
  if (c.pyramid_beta < 1) {
    fail(ErrorCode::kUsage, "pyramid_beta is {}; it must be at least 1", c.pyramid_beta);
  }
}

int64_t ScorePolicy::budget_for(int64_t n_tokens) const {
  int64_t budget = config_.budget;
  if (config_.ratio > 0.0) {
    // A ratio written in decimal may fall just below a whole count: 0.29 * 100 is 28.999...96.
    const double share = config_.ratio * static_cast<double>(n_tokens) * (1.0 + 1e-12);
    budget = std::max(least_budget(), static_cast<int64_t>(std::floor(share)));
  }
  return std::min(budget, n_tokens);
}

Selection ScorePolicy::select(Backend& backend, const PolicyInput& input, int64_t budget) const {
  Selection selection;
  SNAPKV_CHECK(!input.n_rows.empty());
  const int32_t most_rows = *std::max_element(input.n_rows.begin(), input.n_rows.end());
  if (most_rows <= budget) {
    selection.keep_all = true;
    return selection;
  }

  const int64_t n_query = input.q_window.shape[0];
  const int64_t n_window = std::min<int64_t>(config_.window_size, n_query);
  SNAPKV_CHECK(n_window >= 1 && n_window <= budget);
  PolicyInput windowed = input;
  windowed.q_window = input.q_window.slice(n_query - n_window, n_query);

  const int64_t n_head_kv = static_cast<int64_t>(input.n_rows.size());
  std::vector<int32_t> n_prefix;
  for (int32_t n : input.n_rows) {
    SNAPKV_CHECK(n > n_window);
    n_prefix.push_back(n - static_cast<int32_t>(n_window));
  }
  const int64_t n_cols = most_rows - n_window;
  const Buffer scores_storage =
      backend.allocate(static_cast<size_t>(n_head_kv * n_cols) * sizeof(float), "scores");
  const Tensor scores = scores_storage.view(DType::f32, {n_head_kv, n_cols});
  score(backend, windowed, n_prefix, scores);
  require_finite_scores(backend, input.il, n_prefix, scores);
  protect_sinks(backend, n_prefix, scores);

  std::vector<int32_t> k = prefix_budgets(backend, windowed, n_prefix, scores, budget);
  SNAPKV_CHECK(k.size() == n_prefix.size());
  for (size_t h = 0; h < k.size(); ++h) {
    if (input.n_rows[h] <= budget) k[h] = n_prefix[h];
  }
  if (config_.critical) {
    weigh_by_output(backend, windowed, n_prefix, k, n_queries(windowed), scores);
  }
  for (size_t h = 0; h < k.size(); ++h) {
    selection.n_kept.push_back(k[h] + static_cast<int32_t>(n_window));
  }
  const int64_t most_kept = *std::max_element(selection.n_kept.begin(), selection.n_kept.end());
  selection.storage =
      backend.allocate(static_cast<size_t>(n_head_kv * most_kept) * sizeof(int32_t), "selection");
  selection.rows = selection.storage.view(DType::i32, {n_head_kv, most_kept});
  ops::top_k(backend, scores, n_prefix, k, static_cast<int>(n_window), selection.rows);
  return selection;
}

void ScorePolicy::protect_sinks(Backend& backend, std::span<const int32_t> n_prefix,
                                const Tensor& scores) const {
  const std::vector<float> highest(static_cast<size_t>(n_sink()),
                                   std::numeric_limits<float>::infinity());
  for (size_t h = 0; h < n_prefix.size(); ++h) {
    const size_t n = std::min(highest.size(), static_cast<size_t>(n_prefix[h]));
    if (n == 0) continue;
    backend.upload(scores.at<void>(static_cast<int64_t>(h)), highest.data(), n * sizeof(float));
  }
}

std::vector<int32_t> ScorePolicy::prefix_budgets(Backend&, const PolicyInput& input,
                                                 std::span<const int32_t> n_prefix, const Tensor&,
                                                 int64_t budget) const {
  std::vector<int32_t> k;
  for (int32_t n : n_prefix) {
    k.push_back(static_cast<int32_t>(std::min<int64_t>(n, budget - input.q_window.shape[0])));
  }
  return k;
}

}  // namespace snapkv
