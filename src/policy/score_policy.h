// SPDX-License-Identifier: MIT
// ScorePolicy: what most policies share. A policy is a score for every row before the window; this
// base turns scores into a selection: short heads kept whole, else the highest scores and then the
// window. Derived by the policies of this folder.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/policy.h"

namespace snapkv {

class ScorePolicy : public Policy {
 public:
  const PolicyConfig& config() const override { return config_; }
  /// config.budget, or max(W + 1, floor(ratio * n_tokens)) if a ratio is set; at most n_tokens.
  int64_t budget_for(int64_t n_tokens) const override;
  int window_size() const override { return config_.window_size; }
  Selection select(Backend& backend, const PolicyInput& input, int64_t budget) const override;

 protected:
  /// Throws Error{kUsage} naming the field that can't work.
  explicit ScorePolicy(const PolicyConfig& config);

  /// Writes a score for rows [0, n_prefix[h]) of every head; NaN ranks lowest. The window of
  /// `input` has W rows, and n_prefix[h] = input.n_rows[h] - W > 0.
  virtual void score(Backend& backend, const PolicyInput& input, std::span<const int32_t> n_prefix,
                     const Tensor& scores  // [n_head_kv, max(n_prefix)] f32
  ) const = 0;

  /// Rows kept before the window, per head, at most n_prefix[h]: the same count for all here; a
  /// policy with budgets that differ by layer (input.il) or by head (from scores) overrides it.
  virtual std::vector<int32_t> prefix_budgets(Backend& backend, const PolicyInput& input,
                                              std::span<const int32_t> n_prefix,
                                              const Tensor& scores, int64_t budget) const;

 private:
  PolicyConfig config_;
};

}  // namespace snapkv
