// SPDX-License-Identifier: MIT
// Policy "knorm" (Devoto et al., arXiv 2406.11430): keys with a low L2 norm tend to attract
// attention, so the score is -||k||. Reads only keys.
#include "policy/policy_registry.h"
#include "policy/score_policy.h"

namespace snapkv {
namespace {

class KnormSelector final : public Selector<RowParams> {
 public:
  using Selector::Selector;

 private:
  void score(const ScoreInput& input, const Tensor& scores) override {
    ops::row_norms(backend(), {.x = input.k, .n = input.n_prefix, .out = scores, .factor = -1});
  }
};

}  // namespace

PolicyDefinition knorm_policy() {
  return define_policy<ScorePolicy<KnormSelector>>(
      {.name = "knorm", .score = "minus the key's L2 norm", .paper = "2406.11430", .reads = "keys"},
      row_fields());
}

}  // namespace snapkv
