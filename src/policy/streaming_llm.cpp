// SPDX-License-Identifier: MIT
// Policy "streaming-llm" (Xiao et al., arXiv 2309.17453): the first rows, which models park
// attention on ("sinks", 4 of them), and the most recent ones. Reads no query, key or value. Kept
// keys keep the rotation of their true position, as with every policy here; the paper counts
// positions inside its cache, for streams longer than the model's context. Made by the registry.
#include <memory>
#include <numeric>

#include "policy/host_rows.h"
#include "policy/policy_registry.h"
#include "policy/score_policy.h"

namespace snapkv {
namespace {

class StreamingLlmPolicy final : public ScorePolicy {
 public:
  explicit StreamingLlmPolicy(const PolicyConfig& config) : ScorePolicy(config, {.own_sinks = 4}) {}

 private:
  // the row's age; the base keeps the sinks
  void score(Backend& backend, const PolicyInput&, std::span<const int32_t> n_prefix,
             const Tensor& scores) const override {
    for (size_t h = 0; h < n_prefix.size(); ++h) {
      std::vector<float> row(static_cast<size_t>(n_prefix[h]));
      std::iota(row.begin(), row.end(), 0.0f);
      write_scores(backend, scores, static_cast<int64_t>(h), row);
    }
  }
};

}  // namespace

std::unique_ptr<Policy> make_streaming_llm(const PolicyConfig& config) {
  return std::make_unique<StreamingLlmPolicy>(config);
}

}  // namespace snapkv
