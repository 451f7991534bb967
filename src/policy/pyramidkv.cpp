// SPDX-License-Identifier: MIT
// Policy "pyramidkv" (Cai et al., arXiv 2406.02069): SnapKV's scores, and budgets that fall
// linearly from the first layer to the last. With C = budget, B = C - W, L tokens:
//   min = floor(B / beta), max = 2B - min; if max >= L - W: max = L - W, min = 2B - max
//   layer il keeps max - il * (max - min) / (n_layer - 1) + W
// and every layer C when L < 2B. The authors' code rounds the step down before it multiplies, and
// so keeps more than C on average where the division leaves a rest; here il * (max - min) is
// divided, rounded down in the first half of the layers and up in the second, and the mean is
// exactly C. Made by the registry.
#include <algorithm>
#include <memory>

#include "policy/policy_registry.h"
#include "policy/score_policy.h"
#include "policy/snapkv_score.h"

namespace snapkv {
namespace {

class PyramidKvPolicy final : public ScorePolicy {
 public:
  explicit PyramidKvPolicy(const PolicyConfig& config)
      : ScorePolicy(config, {.is_attention = true}) {}

  int64_t layer_budget(int64_t n_tokens, int il, int n_layer) const override {
    const int64_t budget = budget_for(n_tokens), n_window = config().window_size;
    const int64_t n_prefix = budget - n_window;
    if (budget == n_tokens || n_layer < 2 || n_tokens < 2 * n_prefix) return budget;
    int64_t least = n_prefix / config().pyramid_beta, most = 2 * n_prefix - least;
    if (most >= n_tokens - n_window) {
      most = n_tokens - n_window;
      least = 2 * n_prefix - most;
    }
    // layers il and n_layer - 1 - il keep most + least together; most - least is even
    const int64_t from_end = std::min<int64_t>(il, n_layer - 1 - il);
    const int64_t step = from_end * (most - least) / (n_layer - 1);
    return (il == from_end ? most - step : least + step) + n_window;
  }

 private:
  void score(Backend& backend, const PolicyInput& input, std::span<const int32_t> n_prefix,
             const Tensor& scores) const override {
    snapkv_score(backend, config(), input, n_prefix, scores);
  }
};

}  // namespace

std::unique_ptr<Policy> make_pyramidkv(const PolicyConfig& config) {
  return std::make_unique<PyramidKvPolicy>(config);
}

}  // namespace snapkv
