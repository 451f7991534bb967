// SPDX-License-Identifier: MIT
// Policy "pyramidkv" (Cai et al., arXiv 2406.02069): SnapKV's scores, and budgets that fall
// linearly from the first layer to the last. With C = budget, B = C - W, L tokens:
//   min = floor(B / beta), max = 2B - min; if max >= L - W: max = L - W, min = 2B - max
//   layer il keeps max - il * (max - min) / (n_layer - 1) + W
// and every layer keeps C if L < 2B. The authors' code rounds the step down before it multiplies,
// and so keeps more than C on average if the division has a remainder. Here il * (max - min) is
// divided, rounded down in the first half of the layers and up in the second, so the mean is
// exactly C.
#include <algorithm>

#include "policy/policy_registry.h"
#include "policy/votes.h"

namespace snapkv {
namespace {

struct PyramidKvParams : SnapKvParams {
  int pyramid_beta = 20;
};

class PyramidKvPolicy final : public ScorePolicy<SnapKvSelector<PyramidKvParams>> {
 public:
  using ScorePolicy::ScorePolicy;

  int64_t layer_budget(int64_t n_tokens, int il, int n_layer) const override {
    const int64_t budget = budget_for(n_tokens), n_window = params().window_size;
    const int64_t n_prefix = budget - n_window;
    if (budget == n_tokens || n_layer < 2 || n_tokens < 2 * n_prefix) return budget;
    // every layer keeps the sinks; the paper's formula has no sinks and need not say so
    int64_t least = std::max<int64_t>(n_prefix / params().pyramid_beta, params().sinks);
    int64_t most = 2 * n_prefix - least;
    if (most >= n_tokens - n_window) {
      most = n_tokens - n_window;
      least = 2 * n_prefix - most;
    }
    // layers il and n_layer - 1 - il keep most + least together; most - least is even
    const int64_t from_end = std::min<int64_t>(il, n_layer - 1 - il);
    const int64_t step = from_end * (most - least) / (n_layer - 1);
    return (il == from_end ? most - step : least + step) + n_window;
  }
};

}  // namespace

PolicyDefinition pyramidkv_policy() {
  return define_policy<PyramidKvPolicy>(
      {.name = "pyramidkv",
       .score = "as snapkv; budgets fall from layer to layer",
       .paper = "2406.02069",
       .reads = "window, keys"},
      join<PyramidKvParams>(
          snapkv_fields(),
          Fields<PyramidKvParams>{field(&PyramidKvParams::pyramid_beta,
                                        {.name = "pyramid_beta",
                                         .help = "The last layer keeps about budget / beta",
                                         .least = 1})}));
}

}  // namespace snapkv
