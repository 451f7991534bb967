// SPDX-License-Identifier: MIT
#include "policy/score_policy.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/error.h"
#include "policy/finite_scores.h"

namespace snapkv {

Fields<RowParams> row_fields() {
  Field<RowParams> sinks =
      field(&RowParams::sinks, {.name = "sinks",
                                .help = "First positions that are always kept; -1: the default",
                                .least = -1});
  sinks.set = [](RowParams& params, const PolicyValue& value) {
    const int64_t n = std::get<int64_t>(value);
    if (n >= 0) params.sinks = static_cast<int>(n);
  };
  return {
      field(&RowParams::budget, {.name = "budget",
                                 .help = "Rows kept per layer and KV head, the window included",
                                 .least = 1,
                                 .most = std::numeric_limits<int32_t>::max()}),
      field(&RowParams::ratio, {.name = "ratio",
                                .help = "Keep this share of the prompt instead of a budget; 0: off",
                                .least = 0,
                                .most = 1}),
      field(&RowParams::window_size,
            {.name = "window_size",
             .help = "Last tokens of the prompt, which choose what is kept and are always kept",
             .least = 1,
             .always_named = true,
             .label = "window"}),
      sinks,
  };
}

void check(const RowParams& p) {
  if (p.ratio > 0.0 || p.budget > int64_t{p.window_size} + p.sinks) return;
  fail(ErrorCode::kUsage,
       "{} is {}; it counts the window and the sinks and must be greater than {} + {}, which are "
       "{} and {}",
       param_name("budget"), p.budget, param_name("window_size"), param_name("sinks"),
       p.window_size, p.sinks);
}

int64_t RowPolicy::least_budget() const { return int64_t{rows_.window_size} + rows_.sinks + 1; }

int64_t RowPolicy::budget_for(int64_t n_tokens) const {
  int64_t budget = rows_.budget;
  if (rows_.ratio > 0.0) {
    // A ratio written in decimal may come out just below a whole count: 0.29 * 100 is 28.999...96.
    const double share = rows_.ratio * static_cast<double>(n_tokens) * (1.0 + 1e-12);
    budget = std::max(least_budget(), static_cast<int64_t>(std::floor(share)));
  }
  return std::min(budget, n_tokens);
}

Floats::Floats(Backend& backend, std::initializer_list<int64_t> shape, const char* what) {
  int64_t n = 1;
  for (int64_t size : shape) n *= size;
  storage = backend.allocate(n * sizeof(float), what);
  view = storage.view(DType::f32, shape);
}

void Floats::set_zero(Backend& backend) const {
  constexpr int64_t kPiece = 1 << 16;  // zeros are sent in pieces, since the array may be large
  const int64_t n = view.numel();
  const std::vector<float> zeros(std::min(n, kPiece), 0.0f);
  for_pieces(backend, n, kPiece, [&](int64_t begin, int64_t end) {
    backend.upload(static_cast<float*>(view.data) + begin, zeros.data(),
                   (end - begin) * sizeof(float));
  });
}

void ScoreSelector::observe(const QueryChunk& chunk) {
  has_observed_ = true;
  gather(chunk);
}

void ScoreSelector::gather(const QueryChunk&) { SNAPKV_CHECK(!info_.observes); }

Selection ScoreSelector::select(const PolicyInput& input, int64_t budget) {
  Selection selection;
  SNAPKV_CHECK(!input.n_rows.empty());
  const int32_t most_rows = *std::max_element(input.n_rows.begin(), input.n_rows.end());
  if (most_rows <= budget) {
    selection.keep_all = true;
    return selection;
  }
  if (info_.observes && !has_observed_) {
    fail(ErrorCode::kUsage,
         "policy \"{}\" needs every query of the prompt, and here only the window's are known",
         info_.name);
  }

  const int64_t n_query = input.q_window.shape[0];
  const int64_t n_window = std::min<int64_t>(rows_.window_size, n_query);
  SNAPKV_CHECK(n_window >= 1 && n_window <= budget);
  ScoreInput windowed{input, {}};
  windowed.q_window = input.q_window.slice(n_query - n_window, n_query);

  const int64_t n_head_kv = std::ssize(input.n_rows);
  std::vector<int32_t> n_prefix;
  for (int32_t n : input.n_rows) {
    SNAPKV_CHECK(n > n_window);
    n_prefix.push_back(n - static_cast<int32_t>(n_window));
  }
  windowed.n_prefix = n_prefix;
  const int64_t n_cols = most_rows - n_window;
  const Floats scores(backend_, {n_head_kv, n_cols}, "scores");
  score(windowed, scores);
  require_finite_scores(backend_, input.il, n_prefix, scores);
  protect_sinks(n_prefix, scores);

  std::vector<int32_t> k = prefix_budgets(windowed, scores, budget);
  SNAPKV_CHECK(k.size() == n_prefix.size());
  for (size_t h = 0; h < k.size(); ++h) {
    if (input.n_rows[h] <= budget) k[h] = n_prefix[h];
  }
  reweigh(windowed, k, scores);
  protect_sinks(n_prefix, scores);
  for (int32_t n : k) selection.n_kept.push_back(n + static_cast<int32_t>(n_window));
  const int64_t most_kept = *std::max_element(selection.n_kept.begin(), selection.n_kept.end());
  selection.storage = backend_.allocate(n_head_kv * most_kept * sizeof(int32_t), "selection");
  selection.rows = selection.storage.view(DType::i32, {n_head_kv, most_kept});
  ops::top_k(backend_, scores, n_prefix, k, static_cast<int>(n_window), selection.rows);
  return selection;
}

void ScoreSelector::write_rising_scores(const Tensor& scores, int64_t h, int64_t first, int64_t n,
                                        float least) const {
  SNAPKV_CHECK(least > 0.0f);
  // floats above 0 are ordered like their bits
  const auto bits = std::bit_cast<uint32_t>(least);
  SNAPKV_CHECK(n < int64_t{0x7f800000} - bits);
  write_scores(scores, h, first, n, [bits](int64_t i) {
    return std::bit_cast<float>(bits + 1 + static_cast<uint32_t>(i));
  });
}

void ScoreSelector::protect_sinks(std::span<const int32_t> n_prefix, const Tensor& scores) const {
  const std::vector<float> highest(rows_.sinks, std::numeric_limits<float>::infinity());
  for (int64_t h = 0; h < std::ssize(n_prefix); ++h) {
    const size_t n = std::min<size_t>(highest.size(), n_prefix[h]);
    if (n > 0) backend_.upload(scores.at<void>(h), highest.data(), n * sizeof(float));
  }
}

std::vector<int32_t> ScoreSelector::prefix_budgets(const ScoreInput& input, const Tensor&,
                                                   int64_t budget) {
  std::vector<int32_t> k;
  for (int32_t n : input.n_prefix) {
    k.push_back(static_cast<int32_t>(std::min<int64_t>(n, budget - input.q_window.shape[0])));
  }
  return k;
}

}  // namespace snapkv
