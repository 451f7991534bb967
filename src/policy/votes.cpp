// SPDX-License-Identifier: MIT
#include "policy/votes.h"

namespace snapkv {

namespace {

/// Wider than any fact, and narrow enough that pooling takes no time to speak of.
constexpr double kMostKernel = 65'535;

}  // namespace

Fields<GroupParams> group_fields() {
  return {field(&GroupParams::group,
                {.name = "group", .help = "How query heads of one KV head combine their votes"})};
}

Fields<SnapKvParams> snapkv_fields() {
  return join<SnapKvParams>(
      row_fields(),
      Fields<SnapKvParams>{
          field(&SnapKvParams::kernel_size, {.name = "kernel_size",
                                             .help = "Pooling width: a fact must fit into it",
                                             .least = 1,
                                             .most = kMostKernel,
                                             .odd = true,
                                             .always_named = true,
                                             .record = "kernel"}),
          field(&SnapKvParams::pooling,
                {.name = "pooling", .help = "How votes of neighbours combine"})},
      group_fields(), critical_fields());
}

void snapkv_score(Backend& backend, const SnapKvParams& params, const ScoreInput& input,
                  const Tensor& scores) {
  const Buffer storage = backend.allocate(scores.numel() * sizeof(float), "votes");
  const Tensor votes = storage.view(DType::f32, {scores.shape[0], scores.shape[1]});
  ops::window_votes(backend, {.q = input.q_window,
                              .k = input.k,
                              .n_rows = input.n_rows,
                              .scale = input.scale,
                              .group = params.group,
                              .votes = votes,
                              .variant = input.variant});
  ops::pool(backend, votes, input.n_prefix, params.kernel_size, params.pooling, scores);
}

}  // namespace snapkv
