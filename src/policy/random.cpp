// SPDX-License-Identifier: MIT
// Policy "random": a control for experiments. Every row's score is a hash of (seed, layer, head,
// row), so that the same seed keeps the same rows on every machine.
#include "policy/policy_registry.h"
#include "policy/score_policy.h"

namespace snapkv {
namespace {

struct RandomParams : RowParams {
  int64_t seed = 0;
};

/// The finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class RandomSelector final : public Selector<RandomParams> {
 public:
  using Selector::Selector;

 private:
  void score(const ScoreInput& input, const Tensor& scores) override {
    const uint64_t layer_seed = mix(mix(params().seed) + input.il);
    for (int64_t h = 0; h < std::ssize(input.n_prefix); ++h) {
      const uint64_t head_seed = mix(layer_seed + h);
      write_scores(scores, h, 0, input.n_prefix[h], [head_seed](int64_t j) {
        // 24 bits: every value is an exact f32 in [0, 1)
        const uint64_t bits = mix(head_seed + j) >> 40;
        return static_cast<float>(bits) * 0x1p-24f;
      });
    }
  }
};

}  // namespace

PolicyDefinition random_policy() {
  return define_policy<ScorePolicy<RandomSelector>>(
      {.name = "random", .score = "a hash of seed, layer, head and row", .reads = "nothing"},
      join<RandomParams>(row_fields(),
                         Fields<RandomParams>{field(
                             &RandomParams::seed,
                             {.name = "seed", .help = "Another seed, other rows", .least = 0})}));
}

}  // namespace snapkv
