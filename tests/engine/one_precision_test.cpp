// SPDX-License-Identifier: MIT
// What a token of a prompt computes does not depend on how many are read with it: after a prefix,
// a few new tokens give the logits of the whole prompt.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "snapkv/prefill.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace one_precision_tests {

constexpr int64_t kTokens = 200;

SessionOptions options_of() {
  SessionOptions options;
  options.kv.name = "full";
  options.kv_type = DType::f16;
  options.chunk = 64;
  return options;
}

std::shared_ptr<const KvPrefix> read_prefix(const std::shared_ptr<const Model>& model,
                                            std::vector<int32_t> tokens) {
  Session session(model, options_of());
  PrefillPrompt prompt;
  prompt.sessions = {&session};
  prompt.tokens = std::move(tokens);
  prompt.makes_prefix = true;
  Prefill prefill(std::move(prompt));
  while (!prefill.step()) {
  }
  return prefill.take_prefix();
}

float largest_difference(std::span<const float> a, std::span<const float> b) {
  float difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference = std::max(difference, std::abs(a[i] - b[i]));
  return difference;
}

class OnePrecision : public testing::TestWithParam<std::string> {};

TEST_P(OnePrecision, AFewTokensAreMultipliedAsManyAre) {
  const auto model = load_model(GetParam(), Compute::automatic);
  const std::vector<int32_t> tokens = generated_ids(kTokens, 512, 1);
  const auto prefix = read_prefix(model, tokens);
  Session whole(model, options_of());
  whole.prefill(tokens);
  for (const int64_t n_new : {1, 2, 7, 16, 23, 31, 63, 64, 90}) {
    Session shared(model, options_of());
    shared.prefill(tokens, {.prefix = prefix, .n_from_prefix = kTokens - n_new});
    const float difference = largest_difference(whole.logits(), shared.logits());
    if (model->rounds_prompts()) {
      EXPECT_EQ(difference, 0) << n_new << " new tokens";
    } else {
      // the order of sums differs, and so do roundings of the cache to f16
      EXPECT_LT(difference, 5e-3f) << n_new << " new tokens";
    }
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const TestModel& model : test_models()) all.push_back(model.name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Types, OnePrecision, testing::ValuesIn(names()), [](const auto& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace one_precision_tests
}  // namespace snapkv::test
