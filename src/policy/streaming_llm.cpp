// SPDX-License-Identifier: MIT
// Policy "streaming-llm" (Xiao et al., arXiv 2309.17453): keeps the first rows, where models park
// attention ("sinks", 4 of them), and the most recent ones. Reads no queries, keys or values. Kept
// keys keep the rotation of their true position, as with every policy here; the paper counts
// positions inside its cache, for streams longer than the model's context.
#include "policy/policy_registry.h"
#include "policy/score_policy.h"

namespace snapkv {
namespace {

struct StreamingLlmParams : RowParams {
  StreamingLlmParams() { sinks = 4; }
};

class StreamingLlmSelector final : public Selector<StreamingLlmParams> {
 public:
  using Selector::Selector;

 private:
  // more recent rows score higher; the base keeps the sinks
  void score(const ScoreInput& input, const Tensor& scores) override {
    for (int64_t h = 0; h < std::ssize(input.n_prefix); ++h) {
      write_rising_scores(scores, h, 0, input.n_prefix[h], 1.0f);
    }
  }
};

}  // namespace

PolicyDefinition streaming_llm_policy() {
  return define_policy<ScorePolicy<StreamingLlmSelector>>(
      {.name = "streaming-llm",
       .score = "its position: the sinks, then the most recent rows",
       .paper = "2309.17453",
       .reads = "nothing"},
      join<StreamingLlmParams>(row_fields()));
}

}  // namespace snapkv
