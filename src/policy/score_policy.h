// SPDX-License-Identifier: MIT
// The shared base of most policies. A policy is a score for every row before the window; this base
// turns scores into a selection: short heads are kept whole, others keep the sinks, the highest
// scores and then the window. A policy of this folder is a selector that derives from Selector<its
// parameters>, and ScorePolicy<that selector>.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "policy/definition.h"
#include "policy/policy.h"

namespace snapkv {

/// Parameters of every policy that drops rows: the budget, and the rows that are kept in any case.
struct RowParams {
  int64_t budget = PolicyConfig{}.budget;
  double ratio = PolicyConfig{}.ratio;
  int window_size = 32;
  int sinks = 0;
};
Fields<RowParams> row_fields();
/// Throws Error{kUsage} if the budget leaves no row beside window and sinks.
void check(const RowParams& params);

/// The input of a score: a PolicyInput whose window has W rows.
struct ScoreInput : PolicyInput {
  std::span<const int32_t> n_prefix;  // [n_head_kv], n_rows - W > 0: rows that get a score
};

/// Calls f(begin, end) for pieces of [0, n) of `size`, the last one perhaps shorter; in a dry run
/// only for the first, which takes the most memory.
template <typename F>
void for_pieces(const Backend& backend, int64_t n, int64_t size, F f) {
  for (int64_t begin = 0; begin < n; begin += size) {
    f(begin, std::min(begin + size, n));
    if (!backend.computes()) return;
  }
}

/// f32 values in a backend's memory.
struct Floats {
  Floats() = default;
  /// Uninitialized.
  Floats(Backend& backend, std::initializer_list<int64_t> shape, const char* what);
  void set_zero(Backend& backend) const;
  operator const Tensor&() const { return view; }  // NOLINT: ops take views

  Buffer storage;
  Tensor view;
};

class ScoreSelector : public LayerSelector {
 public:
  void observe(const QueryChunk& chunk) final;
  /// Throws Error{kUsage} if the policy observes and has not been shown the layer's queries.
  Selection select(const PolicyInput& input, int64_t budget) final;

 protected:
  ScoreSelector(Backend& backend, const PolicyInfo& info, const RowParams& rows)
      : backend_(backend), info_(info), rows_(rows) {}

  Backend& backend() const { return backend_; }
  const PolicyInfo& info() const { return info_; }

  /// Writes a score for rows [0, n_prefix[h]) of every head; NaN ranks lowest.
  virtual void score(const ScoreInput& input,
                     const Tensor& scores  // [n_head_kv, max(n_prefix)] f32
                     ) = 0;

  /// Takes the next queries, if the policy's PolicyInfo::observes is set.
  virtual void gather(const QueryChunk& chunk);

  /// Rows kept before the window, per head, at most n_prefix[h]. Here the same for all heads; a
  /// policy whose budgets differ by head overrides it.
  virtual std::vector<int32_t> prefix_budgets(const ScoreInput& input, const Tensor& scores,
                                              int64_t budget);

  /// May change the scores once it is known that k[h] rows are kept; sinks' scores do not matter.
  virtual void reweigh(const ScoreInput& /*input*/, std::span<const int32_t> /*k*/,
                       const Tensor& /*scores*/) {}

  /// Writes value(0) ... value(n - 1), computed on the host, to the scores of head h from row
  /// `first` on.
  template <typename F>
  void write_scores(const Tensor& scores, int64_t h, int64_t first, int64_t n, F value) const {
    const Buffer row = backend_.allocate_host(n * sizeof(float), "scores on the host");
    if (!backend_.computes()) return;
    auto* values = static_cast<float*>(row.data());
    for (int64_t i = 0; i < n; ++i) values[i] = value(i);
    backend_.upload(scores.at<float>(h) + first, values, n * sizeof(float));
  }
  /// The same with the next n f32 numbers above `least`, which prefer each row to the one before,
  /// for any number of rows. (Whole numbers would end at 2^24.)
  void write_rising_scores(const Tensor& scores, int64_t h, int64_t first, int64_t n,
                           float least) const;

 private:
  /// Gives the sinks the highest score.
  void protect_sinks(std::span<const int32_t> n_prefix, const Tensor& scores) const;

  Backend& backend_;
  const PolicyInfo& info_;
  const RowParams& rows_;
  bool has_observed_ = false;
};

/// A selector with its policy's parameters, which derive from RowParams.
template <typename ParamsT>
class Selector : public ScoreSelector {
 public:
  using Params = ParamsT;
  Selector(Backend& backend, const PolicyInfo& info, const Params& params)
      : ScoreSelector(backend, info, params), params_(params) {}

 protected:
  const Params& params() const { return params_; }

 private:
  const Params& params_;
};

/// A policy with a budget.
class RowPolicy : public Policy {
 public:
  /// budget, or max(W + sinks + 1, floor(ratio * n_tokens)) if a ratio is set; at most n_tokens.
  int64_t budget_for(int64_t n_tokens) const final;
  /// W + sinks + 1
  int64_t least_budget() const final;
  int window_size() const final { return rows_.window_size; }

 protected:
  RowPolicy(const PolicyInfo& info, const PolicyConfig& config, const RowParams& rows)
      : Policy(info, config), rows_(rows) {}

 private:
  const RowParams rows_;
};

template <typename SelectorT>
class ScorePolicy : public RowPolicy {
 public:
  using Params = typename SelectorT::Params;
  ScorePolicy(const PolicyInfo& info, const PolicyConfig& config, const Params& params)
      : RowPolicy(info, config, params), params_(params) {}

  std::unique_ptr<LayerSelector> make_selector(Backend& backend) const final {
    return std::make_unique<SelectorT>(backend, info(), params_);
  }

 protected:
  const Params& params() const { return params_; }

 private:
  const Params params_;
};

}  // namespace snapkv
