// SPDX-License-Identifier: MIT
// Policy "random": the control of an experiment. Every row's score is a hash of (seed, layer, head,
// row), so that the same seed keeps the same rows on every machine. Made by the registry.
#include <cstdint>
#include <memory>

#include "policy/host_rows.h"
#include "policy/policy_registry.h"
#include "policy/score_policy.h"

namespace snapkv {
namespace {

/// The finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class RandomPolicy final : public ScorePolicy {
 public:
  explicit RandomPolicy(const PolicyConfig& config) : ScorePolicy(config) {}

 private:
  void score(Backend& backend, const PolicyInput& input, std::span<const int32_t> n_prefix,
             const Tensor& scores) const override {
    const uint64_t layer_seed = mix(mix(config().seed) + static_cast<uint64_t>(input.il));
    for (size_t h = 0; h < n_prefix.size(); ++h) {
      const uint64_t head_seed = mix(layer_seed + h);
      std::vector<float> row;
      for (int32_t j = 0; j < n_prefix[h]; ++j) {
        // 24 bits: every value is an exact f32 in [0, 1)
        const uint64_t bits = mix(head_seed + static_cast<uint64_t>(j)) >> 40;
        row.push_back(static_cast<float>(bits) * 0x1p-24f);
      }
      write_scores(backend, scores, static_cast<int64_t>(h), row);
    }
  }
};

}  // namespace

std::unique_ptr<Policy> make_random(const PolicyConfig& config) {
  return std::make_unique<RandomPolicy>(config);
}

}  // namespace snapkv
