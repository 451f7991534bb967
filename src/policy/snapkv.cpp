// SPDX-License-Identifier: MIT
// Policy "snapkv" (arXiv 2404.14469): the prompt's last queries vote for the rows they attend to;
// pooling keeps the neighbours of what was voted for. Made by the registry.
#include <memory>

#include "backend/ops.h"
#include "policy/policy_registry.h"
#include "policy/score_policy.h"
#include "policy/snapkv_score.h"

namespace snapkv {
namespace {

class SnapKvPolicy final : public ScorePolicy {
 public:
  explicit SnapKvPolicy(const PolicyConfig& config) : ScorePolicy(config, {.is_attention = true}) {}

 private:
  void score(Backend& backend, const PolicyInput& input, std::span<const int32_t> n_prefix,
             const Tensor& scores) const override {
    snapkv_score(backend, config(), input, n_prefix, scores);
  }
};

}  // namespace

void snapkv_score(Backend& backend, const PolicyConfig& config, const PolicyInput& input,
                  std::span<const int32_t> n_prefix, const Tensor& scores) {
  const Buffer storage =
      backend.allocate(static_cast<size_t>(scores.numel()) * sizeof(float), "votes");
  const Tensor votes = storage.view(DType::f32, {scores.shape[0], scores.shape[1]});
  ops::window_votes(backend, {.q = input.q_window,
                              .k = input.k,
                              .n_rows = input.n_rows,
                              .scale = input.scale,
                              .group = config.group,
                              .votes = votes,
                              .variant = input.variant});
  ops::pool(backend, votes, n_prefix, config.kernel_size, config.pooling, scores);
}

std::unique_ptr<Policy> make_snapkv(const PolicyConfig& config) {
  return std::make_unique<SnapKvPolicy>(config);
}

}  // namespace snapkv
