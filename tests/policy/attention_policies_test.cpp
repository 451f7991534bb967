// SPDX-License-Identifier: MIT
// The policies that rank rows by the window's attention (pyramidkv, ada-snapkv, chunkkv, tova),
// compared with their definitions in f64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "policy/policy.h"
#include "tests/policy/policy_test_util.h"

namespace snapkv::test {
namespace {

class AttentionPolicies : public testing::TestWithParam<Target> {
 protected:
  std::unique_ptr<Backend> backend_ = make_backend(GetParam());
};
INSTANTIATE_TEST_SUITE_P(, AttentionPolicies, testing::Values(Target::ref, Target::cpu),
                         [](const auto& p) { return target_name(p.param); });

// Runs a policy on heads of different lengths, as in a second turn.
Kept run_ragged(Backend& backend, const PolicyConfig& config, const Layer& l,
                const std::vector<int32_t>& n_rows) {
  const TestTensor q({l.n_window, l.n_head, l.head_dim}, l.q);
  const TestTensor k({l.n_head_kv, l.n_tokens, l.head_dim}, l.k);
  PolicyInput input;
  input.q_window = q;
  input.k = input.v = k;
  input.n_rows = n_rows;
  input.scale = l.scale;
  return kept_rows(
      backend, Policy::make(config)->make_selector(backend)->select(input, config.budget), n_rows);
}

// Head g of a layer alone, with its first n rows.
Layer one_head(const Layer& l, int64_t g, int64_t n) {
  Layer head = l;
  head.n_head = l.n_group(), head.n_head_kv = 1, head.n_tokens = n;
  head.q.clear();
  for (int64_t i = 0; i < l.n_window; ++i) {
    const auto row = l.q.begin() + (i * l.n_head + g * l.n_group()) * l.head_dim;
    head.q.insert(head.q.end(), row, row + l.n_group() * l.head_dim);
  }
  const auto rows = l.k.begin() + g * l.n_tokens * l.head_dim;
  head.k.assign(rows, rows + n * l.head_dim);
  return head;
}

// ---------------------------------------------------------------- pyramidkv

std::vector<int64_t> layer_budgets(const PolicyConfig& config, int64_t n_tokens, int n_layer) {
  const auto policy = Policy::make(config);
  std::vector<int64_t> budgets;
  for (int il = 0; il < n_layer; ++il) {
    budgets.push_back(policy->layer_budget(n_tokens, il, n_layer));
  }
  return budgets;
}

TEST(PyramidKv, BudgetsPerLayer) {
  const PolicyConfig config{.name = "pyramidkv", .budget = 160, .window_size = 32};
  // B = 128: min = 128 / 20 = 6, max = 250, step (250 - 6) / 4 = 61; mean 160
  EXPECT_EQ(layer_budgets(config, 10000, 5), (std::vector<int64_t>{282, 221, 160, 99, 38}));
  // L - W = 238 <= 250: max = 238, min = 18, step 55; the first layer keeps everything.
  EXPECT_EQ(layer_budgets(config, 270, 5), (std::vector<int64_t>{270, 215, 160, 105, 50}));
  // step = 244 / 31 = 7.87, rounded after the multiplication
  const std::vector<int64_t> budgets = layer_budgets(config, 10000, 32);
  EXPECT_EQ(budgets.front(), 282);
  EXPECT_EQ(budgets[1], 282 - 7);
  EXPECT_EQ(budgets[2], 282 - 15);
  EXPECT_EQ(budgets[15], 282 - 118);
  EXPECT_EQ(budgets[16], 38 + 118);
  EXPECT_EQ(budgets.back(), 38);
  // L < 2B: the same as snapkv. Also a single layer, and nothing to drop.
  EXPECT_EQ(layer_budgets(config, 255, 3), (std::vector<int64_t>{160, 160, 160}));
  EXPECT_EQ(layer_budgets(config, 256, 3), (std::vector<int64_t>{256, 160, 64}));
  EXPECT_EQ(layer_budgets(config, 10000, 1), (std::vector<int64_t>{160}));
  EXPECT_EQ(layer_budgets(config, 100, 3), (std::vector<int64_t>{100, 100, 100}));
  PolicyConfig flat = config;
  flat.params["pyramid_beta"] = 1;  // min = B = max
  EXPECT_EQ(layer_budgets(flat, 10000, 3), (std::vector<int64_t>{160, 160, 160}));
}

TEST(PyramidKv, EveryLayerHasRoomForTheSinks) {
  for (const int n_layer : {2, 3, 8, 32}) {
    for (const int64_t budget : {41, 60, 160}) {
      PolicyConfig config{.name = "pyramidkv", .budget = budget, .window_size = 32};
      config.sinks = 8;
      const std::vector<int64_t> budgets = layer_budgets(config, 10000, n_layer);
      EXPECT_GE(budgets.back(), 32 + 8) << n_layer << " " << budget;
      EXPECT_EQ(std::accumulate(budgets.begin(), budgets.end(), int64_t{0}), budget * n_layer);
    }
  }
}

TEST(PyramidKv, LayersTogetherKeepTheBudgetExactly) {
  for (int n_layer : {1, 2, 3, 4, 5, 7, 16, 32, 33, 80}) {
    for (int64_t budget : {33, 34, 40, 77, 160, 1024}) {
      for (int64_t n_tokens : {50, 120, 161, 250, 400, 2047, 10000}) {
        for (int beta : {1, 2, 20, 1000}) {
          const PolicyConfig config{.name = "pyramidkv",
                                    .budget = budget,
                                    .window_size = 32,
                                    .params = {{"pyramid_beta", beta}}};
          const std::vector<int64_t> budgets = layer_budgets(config, n_tokens, n_layer);
          EXPECT_EQ(std::accumulate(budgets.begin(), budgets.end(), int64_t{0}),
                    std::min(budget, n_tokens) * n_layer)
              << budget << " " << n_layer << " " << n_tokens << " " << beta;
          EXPECT_TRUE(std::is_sorted(budgets.rbegin(), budgets.rend()));
          EXPECT_GE(budgets.back(), 32);
          EXPECT_LE(budgets.front(), n_tokens);
        }
      }
    }
  }
}

TEST_P(AttentionPolicies, PyramidKvIsSnapKvWithTheLayersBudget) {
  PolicyConfig config{.name = "pyramidkv", .budget = 96, .window_size = 16};
  const Layer l = random_layer(500, 16, 4, 2, 32, DType::f32, 61);
  for (int il : {0, 2, 4}) {  // B = 80: min 4, max 156, step 38
    const Kept kept = run_policy(*backend_, *Policy::make(config), l, DType::f32, il, 5);
    for (int64_t g = 0; g < 2; ++g) {
      EXPECT_TRUE(
          is_selection(kept[g], oracle_scores(l, config, g), 16, 156 - 38 * il, kTolerance));
    }
  }
  config.budget = 24;  // B = 8: the last of 5 layers keeps only its window
  const Kept last = run_policy(*backend_, *Policy::make(config), l, DType::f32, 4, 5);
  std::vector<int32_t> window(16);
  std::iota(window.begin(), window.end(), 484);
  EXPECT_EQ(last, (Kept{window, window}));
}

// ---------------------------------------------------------------- ada-snapkv

// The definition: the highest scores of all heads, then the floor; not yet rounded.
std::vector<double> ada_counts(const std::vector<Scores>& scores, int64_t base, double floor) {
  std::vector<std::pair<double, size_t>> all;
  for (size_t h = 0; h < scores.size(); ++h) {
    for (double s : scores[h]) all.emplace_back(-s, h);
  }
  std::sort(all.begin(), all.end());
  std::vector<double> counts(scores.size(), std::floor(static_cast<double>(base) * floor));
  for (size_t i = 0; i < base * scores.size(); ++i) {
    counts[all[i].second] += 1.0 - floor;
  }
  return counts;
}

TEST_P(AttentionPolicies, AdaSnapKvSharesALayersRowsBetweenItsHeads) {
  for (int64_t n_group : {1, 4}) {
    for (double floor : {0.0, 0.2, 1.0}) {
      const PolicyConfig config{.name = "ada-snapkv",
                                .budget = 116,
                                .window_size = 16,
                                .params = {{"head_floor", floor}}};
      Layer l = random_layer(900, 16, 3 * n_group, 3, 32, DType::f16, 62);
      for (size_t i = 0; i < l.k.size() / 3; ++i) l.k[i] *= 0.25f;  // head 0 looks everywhere
      const Kept kept = run_policy(*backend_, config, l, DType::f16);
      std::vector<Scores> scores;
      for (int64_t g = 0; g < 3; ++g) scores.push_back(oracle_scores(l, config, g));
      const std::vector<double> counts = ada_counts(scores, 100, floor);
      size_t total = 0;
      for (size_t g = 0; g < 3; ++g) {
        total += kept[g].size();
        const int64_t k = std::ssize(kept[g]) - 16;
        EXPECT_NEAR(static_cast<double>(k), counts[g], 1.0 + 1e-6) << g;
        EXPECT_TRUE(is_selection(kept[g], scores[g], 16, k, kTolerance)) << g;
      }
      EXPECT_EQ(total, 3u * 116u);
      EXPECT_EQ(kept[0].size() == 116u, floor == 1.0) << "the same for all";
    }
  }
}

TEST_P(AttentionPolicies, AdaSnapKvByHand) {
  // 20 spikes in head 0, 4 in head 1, B = 12: the counts are 20 and 4, so 0.8 * 20 + 2 = 18 and
  // 0.8 * 4 + 2 = 5.2; the row lost by rounding goes to head 1.
  std::vector<float> many(208, 0.0f), few(208, 0.0f);
  for (size_t i = 0; i < 20; ++i) many[30 + i * 5] = 6.0f;
  for (size_t i = 0; i < 4; ++i) few[100 + i * 10] = 6.0f;
  const PolicyConfig config{
      .name = "ada-snapkv", .budget = 20, .window_size = 8, .params = {{"kernel_size", 1}}};
  Kept expected(2);
  for (int32_t i = 0; i < 18; ++i) expected[0].push_back(30 + i * 5);
  expected[1] = {0, 1, 100, 110, 120, 130};
  for (std::vector<int32_t>& head : expected) {
    for (int32_t row = 200; row < 208; ++row) head.push_back(row);
  }
  EXPECT_EQ(run_policy(*backend_, config, layer_of_logits({many, few}, 8)), expected);
}

TEST_P(AttentionPolicies, AdaSnapKvGivesWhatShortHeadsDoNotNeedToTheOthers) {
  const Layer l = random_layer(400, 16, 6, 3, 32, DType::f32, 63);
  const PolicyConfig config{.name = "ada-snapkv", .budget = 64, .window_size = 16};
  const Kept kept = run_ragged(*backend_, config, l, {400, 50, 217});
  EXPECT_EQ(kept[1].size(), 50u);
  EXPECT_EQ(kept[0].size() + kept[2].size(), 3u * 64u - 50u);
  for (size_t g : {0u, 2u}) {
    const Layer head = one_head(l, g, g == 0 ? 400 : 217);
    EXPECT_TRUE(is_selection(kept[g], oracle_scores(head, config, 0), 16, std::ssize(kept[g]) - 16,
                             kTolerance));
  }
  // If there is more room than rows, the long head keeps all of its rows.
  EXPECT_EQ(run_ragged(*backend_, config, l, {70, 20, 20})[0].size(), 70u);
}

// ---------------------------------------------------------------- chunkkv

TEST_P(AttentionPolicies, ChunkKvKeepsWholeChunks) {
  std::vector<float> logits(108, 0.0f);
  logits[42] = 5.0f;               // chunk 40..49
  logits[93] = logits[95] = 4.5f;  // the last chunk before the window, 90..99
  logits[7] = 2.0f;                // chunk 0..9
  PolicyConfig config{
      .name = "chunkkv", .budget = 28, .window_size = 8, .params = {{"chunk_length", 10}}};
  const Layer l = layer_of_logits({logits}, 8);
  const auto rows = [](std::initializer_list<std::pair<int32_t, int32_t>> ranges) {
    std::vector<int32_t> out;
    for (auto [begin, end] : ranges) {
      for (int32_t i = begin; i < end; ++i) out.push_back(i);
    }
    return Kept{out};
  };
  EXPECT_EQ(run_policy(*backend_, config, l), rows({{40, 50}, {90, 108}}));
  config.budget = 31;  // three rows of the third chunk
  EXPECT_EQ(run_policy(*backend_, config, l), rows({{0, 3}, {40, 50}, {90, 108}}));
  config.params["chunk_length"] = 1000;  // one chunk: the first rows
  EXPECT_EQ(run_policy(*backend_, config, l), rows({{0, 23}, {100, 108}}));
}

TEST_P(AttentionPolicies, ChunkKvEqualsTheDefinition) {
  for (int64_t n_group : {1, 4}) {
    for (int length : {1, 7, 20}) {
      const PolicyConfig config{.name = "chunkkv",
                                .budget = 216,
                                .window_size = 16,
                                .params = {{"chunk_length", length}}};
      const Layer l = random_layer(1003, 16, 2 * n_group, 2, 32, DType::bf16, 64);
      const Kept kept = run_policy(*backend_, config, l, DType::bf16);
      for (int64_t g = 0; g < 2; ++g) {
        Scores scores = oracle_scores(l, {.params = {{"kernel_size", 1}}}, g);  // unpooled
        for (size_t begin = 0; begin < scores.size(); begin += length) {
          const size_t end = std::min(scores.size(), begin + length);
          double sum = 0.0;
          for (size_t j = begin; j < end; ++j) sum += scores[j];
          for (size_t j = begin; j < end; ++j) scores[j] = sum / static_cast<double>(end - begin);
        }
        EXPECT_TRUE(is_selection(kept[g], scores, 16, 200, kTolerance));
      }
    }
  }
}

// ---------------------------------------------------------------- tova

// The attention of the last query of head h to all rows but its own.
Scores last_votes(const Layer& l, int64_t h) {
  Layer last = l;
  last.n_window = 1;
  last.q.assign(l.q.end() - l.n_head * l.head_dim, l.q.end());
  return oracle_votes(last, h);
}

TEST_P(AttentionPolicies, TovaAveragesTheLastQuerysHeads) {
  for (int64_t n_group : {1, 4}) {
    const PolicyConfig config{.name = "tova", .budget = 150, .window_size = 16};
    const Layer l = random_layer(800, 16, 2 * n_group, 2, 64, DType::f16, 65);
    Scores mean(l.n_prefix(), 0.0);
    for (int64_t h = 0; h < l.n_head; ++h) {
      const Scores votes = last_votes(l, h);
      for (size_t j = 0; j < mean.size(); ++j) {
        mean[j] += votes[j] / static_cast<double>(l.n_head);
      }
    }
    const Kept kept = run_policy(*backend_, config, l, DType::f16);
    EXPECT_EQ(kept[0], kept[1]) << "every head keeps the same rows";
    EXPECT_TRUE(is_selection(kept[0], mean, 16, 134, kTolerance));
  }
}

TEST_P(AttentionPolicies, TovaOnHeadsOfDifferentLengths) {
  const Layer l = random_layer(400, 16, 6, 3, 32, DType::f32, 66);
  const PolicyConfig config{.name = "tova", .budget = 64, .window_size = 16};
  const Kept kept = run_ragged(*backend_, config, l, {400, 50, 217});
  EXPECT_EQ(kept[1].size(), 50u);
  for (size_t g : {0u, 2u}) {
    const Layer head = one_head(l, g, g == 0 ? 400 : 217);
    Scores mean = last_votes(head, 0);
    const Scores other = last_votes(head, 1);
    for (size_t j = 0; j < mean.size(); ++j) mean[j] = (mean[j] + other[j]) / 2;
    mean.resize(head.n_prefix());
    EXPECT_TRUE(is_selection(kept[g], mean, 16, 48, kTolerance));
  }
}

}  // namespace
}  // namespace snapkv::test
