// SPDX-License-Identifier: MIT
// Parameter "critical" compared with its definition in f64: half of the rows are chosen by
// attention, the rest by attention times the norm of what the row's value adds to the output.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "policy/policy.h"
#include "tests/policy/policy_test_util.h"
#include "tests/support/expect_error.h"

namespace snapkv::test {
namespace {

class Critical : public testing::TestWithParam<Target> {
 protected:
  std::unique_ptr<Backend> backend_ = make_backend(GetParam());
};
INSTANTIATE_TEST_SUITE_P(, Critical, testing::Values(Target::ref, Target::cpu),
                         [](const auto& p) { return target_name(p.param); });

constexpr int64_t kEmbd = 48;

// Scores whose top 100 are those of the definition, for KV head g.
Scores critical_scores(const Layer& l, const PolicyConfig& c, const TestTensor& wo, int64_t g) {
  const std::vector<float> w = wo.values();
  const Scores attention = oracle_scores(l, c, g);
  const std::vector<int32_t> first = oracle_top(attention, 50);
  Scores out;
  for (size_t j = 0; j < attention.size(); ++j) {
    const float* v = l.v.data() + (g * l.n_tokens + static_cast<int64_t>(j)) * l.head_dim;
    double norm = 0.0;
    for (int64_t h = g * l.n_group(); h < (g + 1) * l.n_group(); ++h) {
      for (int64_t i = 0; i < kEmbd; ++i) {
        norm += std::abs(oracle_dot(w.data() + (i * l.n_head + h) * l.head_dim, v, l.head_dim));
      }
    }
    out.push_back((attention[j] / static_cast<double>(l.n_window) + 1e-4) * norm);
  }
  for (int32_t j : first) out[j] = 1e30;
  return out;
}

TEST_P(Critical, WeighsHalfOfTheRowsByTheirOutput) {
  for (int64_t n_group : {1, 3}) {
    for (DType type : {DType::f32, DType::q8_0}) {
      Layer l = random_layer(600, 16, 2 * n_group, 2, 32, DType::f16, 81);
      l.v = random_tensor({2, 600, 32}, 82, DType::bf16).values();
      for (size_t i = 0; i < l.v.size(); ++i) l.v[i] *= i / 32 % 3 == 0 ? 8.0f : 1.0f;
      const TestTensor wo = random_tensor({kEmbd, 2 * n_group * 32}, 83, type);
      const PolicyConfig config{
          .name = "snapkv", .budget = 116, .window_size = 16, .params = {{"critical", true}}};
      const Kept kept =
          run_policy(*backend_, *Policy::make(config), l, DType::f16, 0, 1, {}, {}, wo);
      // Products may be rounded to bf16 in between: 8 bits, averaged over 48 outputs.
      const bool bf16 = backend_->compute_dtype() == DType::bf16;
      for (int64_t g = 0; g < 2; ++g) {
        EXPECT_TRUE(
            is_selection(kept[g], critical_scores(l, config, wo, g), 16, 100, bf16 ? 5e-3 : 1e-5));
      }
      PolicyConfig plain = config;
      plain.params.clear();
      EXPECT_NE(run_policy(*backend_, *Policy::make(plain), l, DType::f16), kept);
    }
  }
}

TEST_P(Critical, EveryPolicyOfAttentionTakesIt) {
  const Layer l = random_layer(300, 16, 4, 2, 32, DType::f16, 84);
  const TestTensor wo = random_tensor({kEmbd, 4 * 32}, 85);
  for (const char* name :
       {"snapkv", "pyramidkv", "ada-snapkv", "tova", "h2o", "expected-attention"}) {
    const PolicyConfig config{
        .name = name, .budget = 64, .window_size = 16, .sinks = 5, .params = {{"critical", true}}};
    const Kept kept =
        run_policy(*backend_, *Policy::make(config), l, DType::f16, 0, 1, {300, 50}, {}, wo);
    EXPECT_EQ(kept[1].size(), 50u) << name;
    EXPECT_GE(kept[0].size(), 64u) << name;
    EXPECT_EQ(kept[0][4], 4) << name;
  }
}

TEST_P(Critical, NeedsTheOutputProjectionAndAttention) {
  const Layer l = random_layer(100, 16, 2, 2, 32, DType::f32, 86);
  const PolicyConfig config{.budget = 64, .window_size = 16, .params = {{"critical", true}}};
  expect_error(ErrorCode::kUsage, {"critical", "output projection"},
               [&] { run_policy(*backend_, *Policy::make(config), l); });
  for (const char* name : {"knorm", "keydiff", "random", "streaming-llm", "chunkkv"}) {
    expect_error(ErrorCode::kUsage, {"critical", name}, [&] {
      validate({.name = name, .params = {{"critical", true}}});
    });
  }
}

}  // namespace
}  // namespace snapkv::test
