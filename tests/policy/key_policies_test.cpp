// SPDX-License-Identifier: MIT
// The policies that use only positions or keys (streaming-llm, random, knorm, keydiff), and the
// sinks that every policy can protect, compared with their definitions in f64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "policy/policy.h"
#include "tests/policy/policy_test_util.h"
#include "tests/support/expect_error.h"

namespace snapkv::test {
namespace {

// f64 scores rounded to f32, compared with f64: only rows this close to the cut may be exchanged.
constexpr double kKeyTolerance = 1e-6;

class KeyPolicies : public testing::TestWithParam<Target> {
 protected:
  std::unique_ptr<Backend> backend_ = make_backend(GetParam());
};
INSTANTIATE_TEST_SUITE_P(, KeyPolicies, testing::Values(Target::ref, Target::cpu),
                         [](const auto& p) { return target_name(p.param); });

std::vector<int32_t> first_and_last(int32_t n_first, int32_t n_last, int32_t n_tokens) {
  std::vector<int32_t> rows(n_first + n_last);
  std::iota(rows.begin(), rows.begin() + n_first, 0);
  std::iota(rows.begin() + n_first, rows.end(), n_tokens - n_last);
  return rows;
}

TEST_P(KeyPolicies, StreamingLlmKeepsSinksAndRecentRows) {
  const Layer l = random_layer(500, 16, 4, 2, 32, DType::f16, 51);
  PolicyConfig config{.name = "streaming-llm", .budget = 100, .window_size = 16};
  std::vector<int32_t> expected = first_and_last(4, 96, 500);
  EXPECT_EQ(run_policy(*backend_, config, l, DType::f16), (Kept{expected, expected}));
  config.sinks = 0;
  expected = first_and_last(0, 100, 500);
  EXPECT_EQ(run_policy(*backend_, config, l, DType::f16), (Kept{expected, expected}));
  config.sinks = 83;  // the most that leave room for one row
  expected = first_and_last(83, 17, 500);
  EXPECT_EQ(run_policy(*backend_, config, l, DType::f16), (Kept{expected, expected}));
  config.budget = 500;
  expected = first_and_last(0, 500, 500);
  EXPECT_EQ(run_policy(*backend_, config, l, DType::f16), (Kept{expected, expected}));
}

// Whole-number scores for recent rows would fail at 2^24, where f32 has no odd numbers.
TEST_P(KeyPolicies, RecentRowsArePreferredHoweverManyThereAre) {
  PolicyConfig config{.name = "lagkv", .budget = 40, .window_size = 8};
  const std::vector<int32_t> expected = first_and_last(4, 36, 200);
  const Layer l = random_layer(200, 8, 4, 2, 32, DType::f16, 51);
  for (const int lag : {100, 1 << 23, 1 << 24, std::numeric_limits<int>::max()}) {
    config.params["lag_size"] = lag;
    EXPECT_EQ(run_policy(*backend_, config, l, DType::f16), (Kept{expected, expected})) << lag;
  }
  config = {.name = "streaming-llm", .budget = 40, .window_size = 8};
  config.sinks = 0;
  const int32_t n = (1 << 24) + 500;
  const std::vector<int32_t> n_rows = {n};
  std::vector<float> vector(8, 1.0f);
  Tensor k(vector.data(), DType::f32, {1, n, 8});
  k.stride[1] = 0;  // all rows are the same
  PolicyInput input;
  input.k = k;
  input.n_rows = n_rows;
  const TestTensor q({8, 1, 8}, std::vector<float>(8 * 8));
  input.q_window = q;
  const auto policy = Policy::make(config);
  const Selection kept = policy->make_selector(*backend_)->select(input, 40);
  const std::vector<int32_t> last = first_and_last(0, 40, n);
  EXPECT_TRUE(std::equal(last.begin(), last.end(), kept.rows.at<const int32_t>(0)));
}

TEST_P(KeyPolicies, KnormKeepsTheShortestKeys) {
  for (int64_t n_group : {1, 4}) {
    for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      const Layer l = random_layer(700, 16, 2 * n_group, 2, 40, dtype, 52);
      const PolicyConfig config{.name = "knorm", .budget = 150, .window_size = 16};
      const Kept kept = run_policy(*backend_, config, l, dtype);
      for (int64_t g = 0; g < 2; ++g) {
        Scores scores;
        for (int64_t j = 0; j < l.n_prefix(); ++j) {
          const float* k = l.k.data() + (g * 700 + j) * 40;
          scores.push_back(-std::sqrt(oracle_dot(k, k, 40)));
        }
        EXPECT_TRUE(is_selection(kept[g], scores, 16, 134, kKeyTolerance));
      }
    }
  }
}

Scores keydiff_scores(const Layer& l, int64_t g) {
  const auto cosine = [&](const std::vector<float>& a, const float* b) {
    const int64_t n = l.head_dim;
    return oracle_dot(a.data(), b, n) /
           std::sqrt(oracle_dot(a.data(), a.data(), n) * oracle_dot(b, b, n));
  };
  std::vector<float> anchor;
  for (int64_t d = 0; d < l.head_dim; ++d) {
    double sum = 0.0;
    for (int64_t j = 0; j < l.n_tokens; ++j) {
      const float* k = l.k.data() + (g * l.n_tokens + j) * l.head_dim;
      sum += k[d] / std::sqrt(oracle_dot(k, k, l.head_dim));
    }
    anchor.push_back(static_cast<float>(sum / static_cast<double>(l.n_tokens)));
  }
  Scores scores;
  for (int64_t j = 0; j < l.n_prefix(); ++j) {
    scores.push_back(-cosine(anchor, l.k.data() + (g * l.n_tokens + j) * l.head_dim));
  }
  return scores;
}

TEST_P(KeyPolicies, KeydiffKeepsTheKeysUnlikeTheOthers) {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    Layer l = random_layer(600, 16, 4, 2, 24, dtype, 53);
    for (size_t i = 0; i < l.k.size(); i += 24) l.k[i] += 2.0f;  // a direction that most keys share
    const TestTensor rounded({2, 600, 24}, l.k, dtype);
    l.k = rounded.values();
    const PolicyConfig config{.name = "keydiff", .budget = 116, .window_size = 16};
    const Kept kept = run_policy(*backend_, config, l, dtype);
    for (int64_t g = 0; g < 2; ++g) {
      // The anchor above is rounded to f32, and cosines are around 0.6.
      EXPECT_TRUE(is_selection(kept[g], keydiff_scores(l, g), 16, 100, 1e-5));
    }
  }
}

TEST_P(KeyPolicies, KeydiffOnKeysOfOneDirectionAndZeroKeys) {
  Layer l = random_layer(40, 4, 1, 1, 8, DType::f32, 54);
  std::fill(l.k.begin(), l.k.end(), 0.0f);
  for (size_t j = 0; j < 40; ++j) l.k[j * 8] = 1.0f + static_cast<float>(j);  // cosine 1
  l.k[20 * 8] = 0.0f;   // a zero key has no direction: cosine 0
  l.k[30 * 8] = -1.0f;  // opposite: -1
  const PolicyConfig config{.name = "keydiff", .budget = 6, .window_size = 4};
  EXPECT_EQ(run_policy(*backend_, config, l), (Kept{{20, 30, 36, 37, 38, 39}}));
}

// The definition of lagkv as plain loops: for each chunk, the spread of each row within the next
// chunk's range, softmax, ranks; then the recent rows from the end, the highest ranks, and of two
// equal ones the lower.
std::vector<double> lag_softmax(const std::vector<float>& x, const Layer& l, int64_t g,
                                int64_t first, int64_t lag) {
  std::vector<double> out;
  double sum = 0.0;
  for (int64_t j = first; j < first + lag; ++j) {
    const auto value = [&](int64_t row, int64_t c) -> double {
      return x[(g * l.n_tokens + row) * l.head_dim + c];
    };
    Scores measured;
    double mean = 0.0, squares = 0.0;
    for (int64_t c = 0; c < l.head_dim; ++c) {
      double low = value(first + lag, c), high = low;
      for (int64_t i = first + lag; i < first + 2 * lag; ++i) {
        low = std::min(low, value(i, c));
        high = std::max(high, value(i, c));
      }
      measured.push_back((value(j, c) - low) / (high - low));
      mean += measured.back() / static_cast<double>(l.head_dim);
    }
    for (double m : measured) squares += (m - mean) * (m - mean);
    out.push_back(std::exp(std::sqrt(squares / static_cast<double>(l.head_dim - 1))));
    sum += out.back();
  }
  for (double& v : out) v /= sum;
  return out;
}

Scores lag_scores(const Layer& l, int64_t g, int64_t n_sink, int64_t lag) {
  Scores scores(l.n_tokens, 0.0);
  int64_t first = n_sink;
  for (; first + 2 * lag <= l.n_tokens; first += lag) {
    Scores chunk = lag_softmax(l.k, l, g, first, lag);
    const Scores of_values = lag_softmax(l.v, l, g, first, lag);
    for (int64_t j = 0; j < lag; ++j) chunk[j] += of_values[j];
    for (int64_t j = 0; j < lag; ++j) {
      for (double other : chunk) scores[first + j] += other < chunk[j];
    }
  }
  for (int64_t j = first; j < l.n_tokens; ++j) scores[j] = static_cast<double>(lag + j);
  for (int64_t j = 0; j < n_sink; ++j) scores[j] = 1e9;
  scores.resize(l.n_prefix());
  return scores;
}

TEST_P(KeyPolicies, LagKvKeepsTheRowsThatTheNextOnesDoNotResemble) {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    Layer l = random_layer(700, 16, 4, 2, 40, dtype, 58);
    l.v = random_tensor({2, 700, 40}, 59, dtype).values();
    for (int lag : {20, 64, 300, 400}) {  // 400: a single chunk, only recent rows
      PolicyConfig config{.name = "lagkv", .budget = 500, .window_size = 16};
      config.params["lag_size"] = lag;
      const Kept kept = run_policy(*backend_, config, l, dtype);
      for (int64_t g = 0; g < 2; ++g) {
        EXPECT_TRUE(is_selection(kept[g], lag_scores(l, g, 4, lag), 16, 484, 0.0)) << lag;
      }
    }
  }
}

TEST_P(KeyPolicies, RandomIsSeededAndUniform) {
  const Layer l = random_layer(4016, 16, 2, 2, 8, DType::f32, 55);
  PolicyConfig config{.name = "random", .budget = 1016, .window_size = 16};
  const auto keep = [&](int il) {
    return run_policy(*backend_, *Policy::make(config), l, DType::f32, il, 4);
  };
  const Kept kept = keep(0);
  EXPECT_EQ(keep(0), kept);
  EXPECT_NE(kept[0], kept[1]) << "heads differ";
  EXPECT_NE(keep(1), kept) << "layers differ";
  config.params["seed"] = 1;
  EXPECT_NE(keep(0), kept) << "seeds differ";
  // 1000 of 4000: each quarter has 250 +- 5 standard deviations (13.7 / 2 without replacement).
  for (const std::vector<int32_t>& head : kept) {
    for (int32_t begin = 0; begin < 4000; begin += 1000) {
      const auto n = std::count_if(head.begin(), head.end(),
                                   [&](int32_t row) { return begin <= row && row < begin + 1000; });
      EXPECT_NEAR(static_cast<double>(n), 250.0, 65.0);
    }
  }
}

TEST(RandomPolicy, KeepsTheSameRowsEverywhere) {
  const Layer l = random_layer(2000, 16, 2, 2, 8, DType::f32, 56);
  const PolicyConfig config{
      .name = "random", .budget = 300, .window_size = 16, .params = {{"seed", 7}}};
  EXPECT_EQ(run_policy(*make_backend(Target::ref), config, l),
            run_policy(*make_backend(Target::cpu), config, l));
}

// ---------------------------------------------------------------- options of every policy

TEST_P(KeyPolicies, SinksAreKeptByEveryPolicy) {
  const Layer l = random_layer(300, 16, 4, 2, 32, DType::f16, 57);
  for (const std::string& policy : one_layer_policies()) {
    const PolicyConfig config{.name = policy, .budget = 64, .window_size = 16, .sinks = 30};
    const Kept kept = run_policy(*backend_, config, l, DType::f16);
    size_t total = 0;
    for (const std::vector<int32_t>& head : kept) {
      total += head.size();
      ASSERT_GT(head.size(), 30u) << policy;
      EXPECT_EQ(head[29], 29) << policy;
      EXPECT_EQ(head[head.size() - 16], 284) << policy;
    }
    EXPECT_EQ(total, policy == "full" ? 600u : 128u) << policy;
  }
}

TEST(PolicyOptions, ValidateNamesFieldAndValues) {
  const auto expect_usage = [](const PolicyConfig& config,
                               std::initializer_list<std::string_view> words) {
    expect_error(ErrorCode::kUsage, words, [&] { validate(config); });
  };
  expect_usage({.sinks = -2}, {"sinks is -2"});
  expect_usage({.budget = 64, .window_size = 32, .sinks = 32}, {"budget is 64", "sinks", "32"});
  validate({.budget = 65, .window_size = 32, .sinks = 32});
  validate({.budget = 1, .ratio = 0.5, .sinks = 32});
  expect_usage({.name = "streaming-llm", .budget = 36, .window_size = 32}, {"budget is 36", "4"});
  validate({.name = "streaming-llm", .budget = 37, .window_size = 32});
  expect_usage({.name = "chunkkv", .params = {{"chunk_length", 0}}}, {"chunk_length is 0"});
  expect_usage({.name = "expected-attention", .params = {{"n_future", 0}}}, {"n_future is 0"});
  for (double floor : {-0.1, 1.1, std::nan("")}) {
    expect_usage({.name = "ada-snapkv", .params = {{"head_floor", floor}}},
                 {"head_floor is", value_text(floor), "from 0 to 1"});
  }
  expect_usage({.name = "pyramidkv", .params = {{"pyramid_beta", 0}}}, {"pyramid_beta is 0"});
  EXPECT_EQ(Policy::make({.ratio = 0.1, .window_size = 8, .sinks = 5})->budget_for(100), 14);
}

}  // namespace
}  // namespace snapkv::test
