// SPDX-License-Identifier: MIT
// The window's votes: parameters of the policies that count them, and SnapKV's score for "snapkv"
// and for policies that only divide its budget differently.
#pragma once

#include "policy/critical.h"

namespace snapkv {

/// Largest pooling width: wider than any fact, and narrow enough for pooling to take negligible
/// time.
inline constexpr double kMostKernel = 65'535;

/// The table row of a pooling width.
template <typename Params>
Field<Params> kernel_field(int Params::*member) {
  return field(member, {.name = "kernel_size",
                        .help = "Pooling width: a fact must fit into it",
                        .least = 1,
                        .most = kMostKernel,
                        .odd = true,
                        .always_named = true,
                        .label = "kernel"});
}

struct GroupParams {
  GroupReduce group = GroupReduce::mean;
};
Fields<GroupParams> group_fields();

/// The parameters of "snapkv".
struct SnapKvParams : RowParams, GroupParams, CriticalParams {
  int kernel_size = 7;
  Pooling pooling = Pooling::max;
};
Fields<SnapKvParams> snapkv_fields();

/// Votes of the window's queries for the rows before it, reduced over each group.
void window_votes(Backend& backend, const ScoreInput& input, GroupReduce group,
                  const Tensor& votes  // [n_head_kv, max(n_prefix)] f32
);

/// Same, then pooled.
void snapkv_score(Backend& backend, const SnapKvParams& params, const ScoreInput& input,
                  const Tensor& scores  // [n_head_kv, max(n_prefix)] f32
);

/// Selects as "snapkv" does; `Params` derives from SnapKvParams.
template <typename Params>
class SnapKvSelector : public AttentionSelector<Params> {
 public:
  using AttentionSelector<Params>::AttentionSelector;

 private:
  void score(const ScoreInput& input, const Tensor& scores) final {
    snapkv_score(this->backend(), this->params(), input, scores);
  }
};

}  // namespace snapkv
