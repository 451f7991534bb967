// SPDX-License-Identifier: MIT
// Policy "snapkv" compared with the plain-loop oracle on both backends: edge cases of lengths,
// spikes at the edges, ties, and random layers for every combination of types, groups and poolings.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "policy/policy.h"
#include "tests/policy/policy_test_util.h"

namespace snapkv::test {
namespace {

std::vector<int32_t> range(int32_t begin, int32_t end) {
  std::vector<int32_t> rows(end - begin);
  std::iota(rows.begin(), rows.end(), begin);
  return rows;
}

// `prefix`, followed by the window of a prompt of n_tokens.
std::vector<int32_t> with_window(std::vector<int32_t> prefix, int32_t n_tokens, int32_t n_window) {
  for (int32_t row : range(n_tokens - n_window, n_tokens)) prefix.push_back(row);
  return prefix;
}

class SnapKv : public testing::TestWithParam<Target> {
 protected:
  std::unique_ptr<Backend> backend_ = make_backend(GetParam());
};
INSTANTIATE_TEST_SUITE_P(, SnapKv, testing::Values(Target::ref, Target::cpu),
                         [](const auto& p) { return target_name(p.param); });

TEST_P(SnapKv, LengthsAroundTheBudget) {
  const PolicyConfig config{.budget = 64, .window_size = 16};
  for (int64_t n_tokens : {1, 15, 16, 17, 63, 64}) {  // L <= W, L = B - 1, L = B: everything
    const int64_t n_window = std::min<int64_t>(n_tokens, 16);
    const Layer l = random_layer(n_tokens, n_window, 2, 2, 32, DType::f32, 1);
    const Kept kept = run_policy(*backend_, config, l);
    const std::vector<int32_t> all = range(0, static_cast<int32_t>(n_tokens));
    EXPECT_EQ(kept, (Kept{all, all})) << n_tokens;
  }
  // L = B + 1: everything but one row; with kernel 1, the row with the lowest vote is left out.
  std::vector<float> logits(65, 1.0f);
  logits[20] = 0.0f;
  std::vector<int32_t> expected = range(0, 65);
  expected.erase(expected.begin() + 20);
  PolicyConfig unpooled = config;
  unpooled.params = {{"kernel_size", 1}};
  EXPECT_EQ(run_policy(*backend_, unpooled, layer_of_logits({logits}, 16)), Kept{expected});
}

TEST_P(SnapKv, SpikesAtTheEdgesOfThePrefix) {
  constexpr int32_t kTokens = 200, kWindow = 8, kPrefix = kTokens - kWindow;
  std::vector<float> first(kTokens, 0.0f), last(kTokens, 0.0f);
  first[0] = 8.0f;
  last[kPrefix - 1] = 8.0f;
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const Layer l = layer_of_logits({first, last}, kWindow);
    const auto keep = [&](int32_t n, Pooling pooling) {
      return run_policy(*backend_,
                        PolicyConfig{.budget = n + kWindow,
                                     .window_size = kWindow,
                                     .params = params_of({.pooling = pooling})},
                        l, dtype);
    };
    // A spike reaches three rows on its inner side; with 4 rows, both poolings keep exactly these.
    for (Pooling pooling : {Pooling::max, Pooling::avg}) {
      EXPECT_EQ(keep(4, pooling),
                (Kept{with_window(range(0, 4), kTokens, kWindow),
                      with_window(range(kPrefix - 4, kPrefix), kTokens, kWindow)}));
    }
    // Max: the four rows tie, and the lower positions win.
    EXPECT_EQ(keep(2, Pooling::max),
              (Kept{with_window({0, 1}, kTokens, kWindow),
                    with_window({kPrefix - 4, kPrefix - 3}, kTokens, kWindow)}));
    // Avg: the zeros of the padding count, so rows farther inside collect more of the background.
    EXPECT_EQ(keep(2, Pooling::avg),
              (Kept{with_window({2, 3}, kTokens, kWindow),
                    with_window({kPrefix - 4, kPrefix - 3}, kTokens, kWindow)}));
  }
}

TEST_P(SnapKv, TheWindowsOwnRowsNeitherVoteNorPool) {
  constexpr int32_t kTokens = 120, kWindow = 8, kPrefix = kTokens - kWindow;
  std::vector<float> logits(kTokens, 0.0f);
  logits[50] = 3.0f;
  logits[kPrefix] = 9.0f;  // if it were pooled, it would reach the prefix's last rows
  for (Pooling pooling : {Pooling::max, Pooling::avg}) {
    const PolicyConfig config{
        .budget = 7 + kWindow, .window_size = kWindow, .params = params_of({.pooling = pooling})};
    EXPECT_EQ(run_policy(*backend_, config, layer_of_logits({logits}, kWindow)),
              Kept{with_window(range(47, 54), kTokens, kWindow)});
  }
}

TEST_P(SnapKv, TiesGoToTheLowerPosition) {
  constexpr int32_t kWindow = 16;
  for (int32_t n_tokens : {100, 1000, 4099}) {
    const Layer l = layer_of_logits({std::vector<float>(n_tokens, 1.0f)}, kWindow);
    PolicyConfig config{.budget = 20 + kWindow, .window_size = kWindow};
    EXPECT_EQ(run_policy(*backend_, config, l), Kept{with_window(range(0, 20), n_tokens, kWindow)});
    config.params["pooling"] = "avg";  // the averages of three rows at each edge include zeros
    EXPECT_EQ(run_policy(*backend_, config, l), Kept{with_window(range(3, 23), n_tokens, kWindow)});
  }
  // Two levels: first the higher rows, then the rest from the lowest position on.
  std::vector<float> logits(300, 0.0f);
  logits[150] = logits[250] = 2.0f;
  const PolicyConfig config{
      .budget = 5 + kWindow, .window_size = kWindow, .params = {{"kernel_size", 1}}};
  EXPECT_EQ(run_policy(*backend_, config, layer_of_logits({logits}, kWindow)),
            Kept{with_window({0, 1, 2, 150, 250}, 300, kWindow)});
}

TEST_P(SnapKv, WindowIsCausal) {
  // Rows of the window that a query cannot see yet are not in its softmax. Query i of head 0 looks
  // only at prefix row i; the window's row W - 1 has a huge score that only query W - 1 sees. If
  // the others saw it, they would vote for nothing, and rows 0..2 would tie with the rest.
  Layer l;
  l.head_dim = 8, l.n_tokens = 40, l.n_window = 4;
  l.q.assign(4 * 8, 0.0f);
  l.k.assign(40 * 8, 0.0f);
  for (size_t i = 0; i < 4; ++i) l.q[i * 8 + i] = 1.0f, l.q[i * 8 + 7] = 1.0f;
  for (size_t j = 0; j < 4; ++j) l.k[(20 + j) * 8 + j] = 6.0f;  // wanted by query j
  l.k[39 * 8 + 7] = 60.0f;
  const PolicyConfig config{.budget = 3 + 4, .window_size = 4, .params = {{"kernel_size", 1}}};
  EXPECT_EQ(run_policy(*backend_, config, l), Kept{with_window({20, 21, 22}, 40, 4)});
}

TEST_P(SnapKv, OnlyTheLastWindowSizeQueriesVote) {
  const Layer l = random_layer(300, 32, 4, 2, 32, DType::f32, 5);
  Layer last = l;  // the last 8 queries
  last.n_window = 8;
  last.q.assign(l.q.end() - 8 * 4 * 32, l.q.end());
  const PolicyConfig config{.budget = 64, .window_size = 8, .params = {{"kernel_size", 5}}};
  const Kept kept = run_policy(*backend_, config, l);
  EXPECT_EQ(kept, run_policy(*backend_, config, last));
  EXPECT_TRUE(is_selection(kept[0], oracle_scores(last, config, 0), 8, 56, kTolerance));
  // If there are fewer queries than window_size (a short second turn), they vote and are the
  // window.
  PolicyConfig wider = config;
  wider.window_size = 32;
  EXPECT_TRUE(is_selection(run_policy(*backend_, wider, last)[1], oracle_scores(last, wider, 1), 8,
                           56, kTolerance));
}

TEST_P(SnapKv, HeadsOfDifferentLengths) {
  constexpr int64_t kCapacity = 400;
  const Layer l = random_layer(kCapacity, 16, 6, 3, 32, DType::f16, 7);
  const TestTensor q({16, 6, 32}, l.q), k({3, kCapacity, 32}, l.k, DType::f16);
  const std::vector<int32_t> n_rows = {400, 50, 217};
  const PolicyConfig config{.budget = 64, .window_size = 16};
  PolicyInput input;
  input.q_window = q;
  input.k = input.v = k;
  input.n_rows = n_rows;
  input.scale = l.scale;
  const Kept kept = kept_rows(
      *backend_, Policy::make(config)->make_selector(*backend_)->select(input, 64), n_rows);
  EXPECT_EQ(kept[1], range(0, 50)) << "a head within the budget keeps every row";
  for (int64_t g : {0, 2}) {
    Layer head = random_layer(1, 1, 2, 1, 32, DType::f32, 0);
    head.n_tokens = n_rows[g], head.n_window = 16;
    head.scale = l.scale;
    head.q.clear();
    for (int64_t i = 0; i < 16; ++i) {
      const auto row = l.q.begin() + (i * 6 + g * 2) * 32;
      head.q.insert(head.q.end(), row, row + 2 * 32);
    }
    const auto rows = l.k.begin() + g * kCapacity * 32;
    head.k.assign(rows, rows + head.n_tokens * 32);
    EXPECT_TRUE(is_selection(kept[g], oracle_scores(head, config, 0), 16, 48, kTolerance)) << g;
  }
}

TEST_P(SnapKv, KeysMayLieAtAnyStride) {
  // [n_tokens, n_head_kv, head_dim] with 8 spare values after each row, as another engine may store
  // it.
  const Layer l = random_layer(500, 32, 4, 2, 64, DType::bf16, 9);
  const TestTensor memory({500, 2, 72}, DType::bf16);
  for (int64_t j = 0; j < 500; ++j) {
    for (int64_t g = 0; g < 2; ++g) {
      convert_values(l.k.data() + (g * 500 + j) * 64, 64, DType::bf16,
                     memory.view().at<void>(j, g));
    }
  }
  const TestTensor q({32, 4, 64}, l.q);
  Tensor k(memory.data(), DType::bf16, {2, 500, 64});
  k.stride[0] = 72 * 2, k.stride[1] = 2 * 72 * 2;
  const std::vector<int32_t> n_rows = {500, 500};
  PolicyInput input;
  input.q_window = q;
  input.k = input.v = k;
  input.n_rows = n_rows;
  input.scale = l.scale;
  const PolicyConfig config{.budget = 100, .window_size = 32};
  const Kept kept = kept_rows(
      *backend_, Policy::make(config)->make_selector(*backend_)->select(input, 100), n_rows);
  EXPECT_EQ(kept, run_policy(*backend_, config, l, DType::bf16));
}

// Every combination, at sizes that leave remainders in every vector and block.
using Combination = std::tuple<Target, int, Pooling, GroupReduce, DType>;
class SnapKvRandom : public testing::TestWithParam<Combination> {};
std::string combination_name(const testing::TestParamInfo<Combination>& info) {
  const auto [target, n_group, pooling, group, dtype] = info.param;
  return std::string(target_name(target)) + (n_group == 1 ? "_mha_" : "_gqa_") +
         (pooling == Pooling::max ? "max_" : "avg_") +
         (group == GroupReduce::max ? "groupmax_" : "groupmean_") + std::string(name(dtype));
}
INSTANTIATE_TEST_SUITE_P(, SnapKvRandom,
                         testing::Combine(testing::Values(Target::ref, Target::cpu),
                                          testing::Values(1, 4),
                                          testing::Values(Pooling::max, Pooling::avg),
                                          testing::Values(GroupReduce::mean, GroupReduce::max),
                                          testing::Values(DType::f32, DType::f16, DType::bf16)),
                         combination_name);

TEST_P(SnapKvRandom, EqualsTheOracle) {
  const auto [target, n_group, pooling, group, dtype] = GetParam();
  const auto backend = make_backend(target);
  struct Size {
    int64_t n_tokens, head_dim;
    int window_size, kernel_size;
    int64_t budget;
  };
  for (const Size& s : {Size{130, 40, 1, 1, 2}, Size{333, 64, 16, 5, 100},
                        Size{1027, 128, 32, 7, 256}, Size{2050, 64, 33, 63, 1024}}) {
    const PolicyConfig config{.budget = s.budget,
                              .window_size = s.window_size,
                              .params = params_of({s.kernel_size, pooling, group})};
    const Layer l = random_layer(s.n_tokens, s.window_size, 2 * n_group, 2, s.head_dim, dtype, 11);
    const Kept kept = run_policy(*backend, config, l, dtype);
    for (int64_t g = 0; g < 2; ++g) {
      EXPECT_TRUE(is_selection(kept[g], oracle_scores(l, config, g), s.window_size,
                               s.budget - s.window_size, kTolerance))
          << s.n_tokens << ", head " << g;
    }
  }
}

TEST_P(SnapKv, LongPrompts) {
  for (int64_t n_group : {1, 4}) {
    const PolicyConfig config{.budget = 1024, .window_size = 32};
    const Layer l = random_layer(20000, 32, n_group, 1, 64, DType::f16, 13);
    const Kept kept = run_policy(*backend_, config, l, DType::f16);
    EXPECT_TRUE(is_selection(kept[0], oracle_scores(l, config, 0), 32, 992, kTolerance)) << n_group;
  }
  // Structured: 100 facts of 7 rows each, among 20000 rows, are kept exactly.
  std::vector<float> logits(20000, 0.0f);
  std::vector<int32_t> expected;
  for (int32_t fact = 0; fact < 100; ++fact) {
    const int32_t centre = 100 + fact * 197;
    logits[centre] = 5.0f + static_cast<float>(fact % 4);
    for (int32_t row : range(centre - 3, centre + 4)) expected.push_back(row);
  }
  for (Pooling pooling : {Pooling::max, Pooling::avg}) {
    const PolicyConfig config{
        .budget = 700 + 32, .window_size = 32, .params = params_of({.pooling = pooling})};
    EXPECT_EQ(run_policy(*backend_, config, layer_of_logits({logits}, 32, 4), DType::bf16),
              Kept{with_window(expected, 20000, 32)});
  }
}

TEST(SnapKvCpu, SelectionDoesNotDependOnThreads) {
  const Layer l = random_layer(6000, 32, 8, 2, 64, DType::f16, 17);
  const PolicyConfig config{.budget = 512, .window_size = 32};
  const Kept one = run_policy(*make_cpu(1), config, l, DType::f16);
  for (int n_threads : {2, 3, 5}) {
    EXPECT_EQ(run_policy(*make_cpu(n_threads), config, l, DType::f16), one) << n_threads;
  }
}

}  // namespace
}  // namespace snapkv::test
