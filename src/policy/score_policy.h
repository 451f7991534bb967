// SPDX-License-Identifier: MIT
// ScorePolicy: what most policies share. A policy is a score for every row before the window; this
// base turns scores into a selection: short heads kept whole, else the sinks, the highest scores
// and then the window. Derived by the policies of this folder.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/policy.h"

namespace snapkv {

/// What the base must know of a policy that derives from it.
struct ScoreTraits {
  int own_sinks = 0;          // PolicyConfig::sinks where the user left it open
  bool is_attention = false;  // scores are attention: PolicyConfig::critical may weigh them
};

class ScorePolicy : public Policy {
 public:
  const PolicyConfig& config() const override { return config_; }
  /// config.budget, or max(W + sinks + 1, floor(ratio * n_tokens)) if a ratio is set; at most
  /// n_tokens.
  int64_t budget_for(int64_t n_tokens) const override;
  /// W + sinks + 1
  int64_t least_budget() const override {
    return static_cast<int64_t>(config_.window_size) + n_sink() + 1;
  }
  int window_size() const override { return config_.window_size; }
  Selection select(Backend& backend, const PolicyInput& input, int64_t budget) const override;

 protected:
  /// Throws Error{kUsage} naming the field that can't work.
  explicit ScorePolicy(const PolicyConfig& config, const ScoreTraits& traits = {});

  /// First rows of every head that are always kept, whatever their scores.
  int n_sink() const { return config_.sinks >= 0 ? config_.sinks : traits_.own_sinks; }

  /// Writes a score for rows [0, n_prefix[h]) of every head; the base refuses NaN and infinities
  /// (finite_scores.h). The window of
  /// `input` has W rows, and n_prefix[h] = input.n_rows[h] - W > 0.
  virtual void score(Backend& backend, const PolicyInput& input, std::span<const int32_t> n_prefix,
                     const Tensor& scores  // [n_head_kv, max(n_prefix)] f32
  ) const = 0;

  /// How many queries' attention a score sums up, for PolicyConfig::critical: the window's here.
  virtual double n_queries(const PolicyInput& input) const {
    return static_cast<double>(input.q_window.shape[0]);
  }

  /// Rows kept before the window, per head, at most n_prefix[h]: the same count for all here; a
  /// policy with budgets that differ by layer (input.il) or by head (from scores) overrides it.
  virtual std::vector<int32_t> prefix_budgets(Backend& backend, const PolicyInput& input,
                                              std::span<const int32_t> n_prefix,
                                              const Tensor& scores, int64_t budget) const;

 private:
  void protect_sinks(Backend& backend, std::span<const int32_t> n_prefix,
                     const Tensor& scores) const;

  PolicyConfig config_;
  ScoreTraits traits_;
};

}  // namespace snapkv
