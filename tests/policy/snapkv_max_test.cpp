// SPDX-License-Identifier: MIT
// Policy snapkv-max compared with its definition in f64: rows are ranked by the strongest attention
// of any query in the window and any head of the group; a share of them by that alone, the others
// by it after pooling.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "policy/policy.h"
#include "tests/policy/policy_test_util.h"

namespace snapkv::test {
namespace {

class SnapKvMax : public testing::TestWithParam<Target> {
 protected:
  std::unique_ptr<Backend> backend_ = make_backend(GetParam());
};
INSTANTIATE_TEST_SUITE_P(, SnapKvMax, testing::Values(Target::ref, Target::cpu),
                         [](const auto& p) { return target_name(p.param); });

// The layer with only the i-th query of its window, which does not see the rows after it.
Layer one_query(const Layer& l, int64_t i) {
  Layer one = l;
  one.n_window = 1;
  one.n_tokens = l.n_prefix() + i + 1;
  const int64_t row = l.n_head * l.head_dim;
  one.q.assign(l.q.begin() + i * row, l.q.begin() + (i + 1) * row);
  one.k.clear();
  for (int64_t g = 0; g < l.n_head_kv; ++g) {
    const auto rows = l.k.begin() + g * l.n_tokens * l.head_dim;
    one.k.insert(one.k.end(), rows, rows + one.n_tokens * l.head_dim);
  }
  return one;
}

Scores strongest_votes(const Layer& l, int64_t g) {
  Scores strongest(l.n_prefix(), 0.0);
  for (int64_t i = 0; i < l.n_window; ++i) {
    const Layer one = one_query(l, i);
    for (int64_t h = g * l.n_group(); h < (g + 1) * l.n_group(); ++h) {
      const Scores votes = oracle_votes(one, h);
      for (size_t j = 0; j < strongest.size(); ++j) {
        strongest[j] = std::max(strongest[j], votes[j]);
      }
    }
  }
  return strongest;
}

// The scores to rank: rows chosen by their own votes come first.
Scores ranked_scores(const Layer& l, int64_t g, int64_t k, int kernel_size, double own_share) {
  const Scores votes = strongest_votes(l, g);
  Scores scores = oracle_pool(votes, kernel_size, Pooling::max);
  const auto n_own = static_cast<int64_t>(std::floor(static_cast<double>(k) * own_share));
  for (const int32_t j : oracle_top(votes, n_own)) {
    scores[j] = std::numeric_limits<double>::infinity();
  }
  return scores;
}

TEST_P(SnapKvMax, KeepsWhatItsDefinitionSays) {
  struct Case {
    int64_t n_tokens, n_window, budget;
    int kernel_size;
    double own_share;
  };
  for (const Case& c : {Case{300, 16, 64, 15, 0.5},
                        {300, 16, 65, 15, 0.5},  // an odd number of rows before the window
                        {300, 1, 20, 7, 0.5},
                        {300, 8, 40, 5, 0.25},
                        {300, 8, 40, 5, 0.0},
                        {300, 8, 40, 5, 1.0},
                        {700, 16, 600, 31, 0.5}}) {
    for (const int64_t n_group : {1, 3}) {
      const Layer l = random_layer(c.n_tokens, c.n_window, 2 * n_group, 2, 32, DType::f16, 5);
      PolicyConfig config{.name = "snapkv-max", .budget = c.budget};
      config.window_size = static_cast<int>(c.n_window);
      config.params = {{"kernel_size", int64_t{c.kernel_size}}, {"own_share", c.own_share}};
      const Kept kept = run_policy(*backend_, config, l, DType::f16);
      const int64_t k = c.budget - c.n_window;
      for (int64_t g = 0; g < 2; ++g) {
        EXPECT_TRUE(is_selection(kept[g], ranked_scores(l, g, k, c.kernel_size, c.own_share),
                                 c.n_window, k, kTolerance))
            << c.n_tokens << " tokens, budget " << c.budget << ", group of " << n_group;
      }
    }
  }
}

// Rows before the window whose vote, or half of whose pooled one, is at least `least`.
std::vector<int32_t> attended(const Scores& votes, double least) {
  const Scores pooled = oracle_pool(votes, 15, Pooling::max);
  std::vector<int32_t> rows;
  for (int32_t j = 0; j < std::ssize(votes); ++j) {
    if (std::max(votes[j], pooled[j] / 2) >= least) rows.push_back(j);
  }
  return rows;
}

TEST_P(SnapKvMax, KeepsTheRowsWithTheLeastAttention) {
  const Layer l = random_layer(700, 16, 6, 2, 32, DType::f16, 5);
  for (const int n_first : {0, 20, 150}) {  // so many of the first head have it by themselves
    Scores sorted = strongest_votes(l, 0);
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    // between two votes, so that rounding does not decide
    const double least = n_first == 0 ? 0.999 : (sorted[n_first - 1] + sorted[n_first]) / 2;
    PolicyConfig config{.name = "snapkv-max", .budget = 600};
    config.params = {{"least_attention", least}, {"kernel_size", int64_t{15}}};
    const Kept kept = run_policy(*backend_, config, l, DType::f16);
    for (int64_t g = 0; g < 2; ++g) {
      const Scores votes = strongest_votes(l, g);
      const std::vector<int32_t> certain = attended(votes, least * (1 + 1e-4));
      const std::vector<int32_t> possible = attended(votes, least * (1 - 1e-4));
      ASSERT_LT(possible.size(), 600u - 16u);
      ASSERT_GE(kept[g].size(), 16u);
      const std::vector<int32_t> rows(kept[g].begin(), kept[g].end() - 16);
      EXPECT_TRUE(std::includes(rows.begin(), rows.end(), certain.begin(), certain.end()));
      EXPECT_TRUE(std::includes(possible.begin(), possible.end(), rows.begin(), rows.end()));
      EXPECT_EQ(kept[g].back(), 699);  // the window stays whatever its attention
    }
  }
}

TEST_P(SnapKvMax, KeepsNoMoreThanItsBudgetOfTheRowsWithTheLeastAttention) {
  const Layer l = random_layer(700, 16, 6, 2, 32, DType::f16, 5);
  PolicyConfig config{.name = "snapkv-max", .budget = 60, .window_size = 16, .sinks = 2};
  config.params = {{"least_attention", 1e-9}};
  const Kept kept = run_policy(*backend_, config, l, DType::f16);
  for (int64_t g = 0; g < 2; ++g) {
    Scores scores = oracle_pool(strongest_votes(l, g), 15, Pooling::max);
    const Scores votes = strongest_votes(l, g);
    for (size_t j = 0; j < scores.size(); ++j) scores[j] = std::max(votes[j], scores[j] / 2);
    scores[0] = scores[1] = std::numeric_limits<double>::infinity();
    EXPECT_TRUE(is_selection(kept[g], scores, 16, 44, kTolerance));
  }
}

TEST_P(SnapKvMax, ASingleQueryIsEnough) {
  // Row 3 has all of one query's attention, row 40 a little of every query's. With one row to keep,
  // a sum over the window keeps row 40, and the strongest vote keeps row 3.
  Layer l = layer_of_logits({std::vector<float>(100, 0.0f)}, 8);
  for (int64_t i = 0; i < l.n_window; ++i) {
    l.q[i * l.head_dim] = 0.0f;
    l.q[i * l.head_dim + 1] = i == 2 ? 0.0f : 1.0f;
  }
  l.q[2 * l.head_dim] = 1.0f;
  l.k[3 * l.head_dim] = 12.0f;
  l.k[40 * l.head_dim + 1] = 4.0f;
  const PolicyParams narrow = {{"kernel_size", int64_t{1}}};
  const PolicyConfig sum{.name = "snapkv", .budget = 9, .window_size = 8, .params = narrow};
  const PolicyConfig max{.name = "snapkv-max", .budget = 9, .window_size = 8, .params = narrow};
  EXPECT_EQ(run_policy(*backend_, sum, l)[0][0], 40);
  EXPECT_EQ(run_policy(*backend_, max, l)[0][0], 3);
}

TEST_P(SnapKvMax, SinksStayBesideTheRowsOfTheirOwn) {
  const Layer l = random_layer(200, 8, 2, 2, 32, DType::f32, 9);
  const PolicyConfig config{.name = "snapkv-max", .budget = 20, .window_size = 8, .sinks = 4};
  for (const std::vector<int32_t>& rows : run_policy(*backend_, config, l)) {
    ASSERT_EQ(rows.size(), 20u);
    for (int32_t j = 0; j < 4; ++j) EXPECT_EQ(rows[j], j);
  }
}

TEST(SnapKvMaxConfig, HasAWindowOfItsOwn) {
  EXPECT_EQ(policy_window({.name = "snapkv-max"}), 16);
  EXPECT_EQ(policy_window({.name = "snapkv-max", .budget = 100}), 12);
  EXPECT_EQ(policy_window({.name = "snapkv-max", .budget = 64}), 8);
  EXPECT_EQ(policy_window({.name = "snapkv-max", .budget = 5}), 4);
  EXPECT_EQ(policy_window({.name = "snapkv-max", .budget = 64, .ratio = 0.5}), 16);
  EXPECT_EQ(policy_window({.name = "snapkv-max", .window_size = 5}), 5);
  EXPECT_EQ(policy_window({}), 32);
  EXPECT_EQ(policy_window({.name = "full"}), 0);
}

TEST(SnapKvMaxConfig, PoolsWiderWithMoreRows) {
  const auto kernel = [](PolicyConfig config) {
    config.name = "snapkv-max";
    return std::get<int64_t>(policy_value(config, "kernel_size"));
  };
  EXPECT_EQ(kernel({.budget = 64}), 15);
  EXPECT_EQ(kernel({.budget = 255}), 15);
  EXPECT_EQ(kernel({.budget = 256}), 31);
  EXPECT_EQ(kernel({.budget = 512}), 63);
  EXPECT_EQ(kernel({}), 63);
  EXPECT_EQ(kernel({.budget = 64, .ratio = 0.5}), 15);  // how many rows that are is not known
  EXPECT_EQ(kernel({.params = {{"least_attention", 0.05}}}), 63);
  EXPECT_EQ(kernel({.params = {{"kernel_size", int64_t{7}}}}), 7);
}

// A value of many tokens, of which the window sees only the first: with the default settings all of
// it stays.
TEST_P(SnapKvMax, KeepsALongValueThatTheWindowSeesTheBeginningOf) {
  std::vector<float> logits(4000, 0.0f);
  logits[1000] = 12.0f;
  const Layer l = layer_of_logits({logits}, 16);
  for (const int64_t budget : {256, 512, 1024}) {
    const Kept kept = run_policy(*backend_, {.name = "snapkv-max", .budget = budget}, l);
    const int32_t n_value = budget == 256 ? 15 : 31;
    for (int32_t j = 0; j < n_value; ++j) {
      EXPECT_TRUE(std::binary_search(kept[0].begin(), kept[0].end(), 1000 + j))
          << "row " << j << " of the value, budget " << budget;
    }
  }
}

}  // namespace
}  // namespace snapkv::test
