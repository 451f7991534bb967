// SPDX-License-Identifier: MIT
// Parameter "critical" (CriticalKV; Feng et al., arXiv 2502.03805) of the policies whose scores are
// attention. The effect of dropping a row is its attention times what its value adds to the layer's
// output. Half of the rows are kept by attention alone; the rest compete by (attention + 1e-4) *
// ||W_o v||_1, with the norm averaged over the group's query heads.
#pragma once

#include <cstdint>
#include <span>

#include "policy/score_policy.h"

namespace snapkv {

struct CriticalParams {
  bool critical = false;
};
Fields<CriticalParams> critical_fields();

/// Changes `scores` so that the k[h] highest are the rows chosen this way. `n_queries`: the number
/// of queries whose attention a score sums up. Throws Error{kUsage} without values or output
/// projection.
void weigh_by_output(Backend& backend, const ScoreInput& input, std::span<const int32_t> k,
                     double n_queries,
                     const Tensor& scores  // [n_head_kv, max(n_prefix)] f32
);

/// A selector whose scores are attention; its Params also derive from CriticalParams.
template <typename Params>
class AttentionSelector : public Selector<Params> {
 public:
  using Selector<Params>::Selector;

 protected:
  /// The number of queries whose attention a score sums up; here the window's.
  virtual double n_queries(const ScoreInput& input) const {
    return static_cast<double>(input.q_window.shape[0]);
  }

 private:
  void reweigh(const ScoreInput& input, std::span<const int32_t> k, const Tensor& scores) final {
    if (!this->params().critical) return;
    weigh_by_output(this->backend(), input, k, n_queries(input), scores);
  }
};

}  // namespace snapkv
