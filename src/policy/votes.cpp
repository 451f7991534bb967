// SPDX-License-Identifier: MIT
#include "policy/votes.h"

namespace snapkv {

Fields<GroupParams> group_fields() {
  return {field(&GroupParams::group,
                {.name = "group", .help = "How query heads of one KV head combine their votes"})};
}

Fields<SnapKvParams> snapkv_fields() {
  return join<SnapKvParams>(
      row_fields(),
      Fields<SnapKvParams>{kernel_field(&SnapKvParams::kernel_size),
                           field(&SnapKvParams::pooling,
                                 {.name = "pooling", .help = "How votes of neighbours combine"})},
      group_fields(), critical_fields());
}

void window_votes(Backend& backend, const ScoreInput& input, GroupReduce group,
                  const Tensor& votes) {
  ops::window_votes(backend, {.q = input.q_window,
                              .k = input.k,
                              .n_rows = input.n_rows,
                              .scale = input.scale,
                              .group = group,
                              .votes = votes,
                              .variant = input.variant});
}

void snapkv_score(Backend& backend, const SnapKvParams& params, const ScoreInput& input,
                  const Tensor& scores) {
  const Floats votes(backend, {scores.shape[0], scores.shape[1]}, "votes");
  window_votes(backend, input, params.group, votes);
  ops::pool(backend, votes, input.n_prefix, params.kernel_size, params.pooling, scores);
}

}  // namespace snapkv
