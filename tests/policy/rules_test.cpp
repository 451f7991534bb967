// SPDX-License-Identifier: MIT
// The meaning of "equal to the published implementations": with one query head per KV head, the
// kept set is that of the paper's code; with groups and average pooling, that of kvpress's
// SnapKVPress with the same count. Their rules are written out in selection_oracle.h.
#include <gtest/gtest.h>

#include <vector>

#include "tests/policy/policy_test_util.h"

namespace snapkv::test {
namespace {

class PublishedRules : public testing::TestWithParam<Target> {
 protected:
  std::unique_ptr<Backend> backend_ = make_backend(GetParam());
};
INSTANTIATE_TEST_SUITE_P(, PublishedRules, testing::Values(Target::ref, Target::cpu),
                         [](const auto& p) { return target_name(p.param); });

// Facts at the edges and inside, of different strengths, one of them right before the window.
std::vector<float> facts(int64_t n_tokens, int64_t n_window, int64_t shift) {
  std::vector<float> logits(n_tokens, 0.0f);
  const int64_t n_prefix = n_tokens - n_window;
  for (int64_t i : {int64_t{0}, 60 + shift, 120 + 2 * shift, 180 + shift, n_prefix - 1}) {
    logits[i] = 4.0f + static_cast<float>(i % 3);
  }
  return logits;
}

TEST_P(PublishedRules, OfficialCodeWithOneQueryHeadPerKvHead) {
  for (Pooling pooling : {Pooling::max, Pooling::avg}) {
    for (int kernel_size : {5, 7, 13}) {
      const PolicyConfig config{
          .budget = 200,
          .window_size = 16,
          .params = params_of({.kernel_size = kernel_size, .pooling = pooling})};
      const Layer l = random_layer(1500, 16, 3, 3, 64, DType::f32, 21);
      const Kept kept = run_policy(*backend_, config, l);
      for (int64_t h = 0; h < 3; ++h) {
        EXPECT_TRUE(is_selection(kept[h], official_scores(l, config, h), 16, 200 - 16, kTolerance));
      }
    }
  }
}

TEST_P(PublishedRules, OfficialCodeExactlyOnStructuredLayers) {
  // The budget is at most the number of rows that a fact's pooling reaches, so that rows of the
  // equal background do not compete.
  for (Pooling pooling : {Pooling::max, Pooling::avg}) {
    const PolicyConfig config{
        .budget = 24 + 16, .window_size = 16, .params = params_of({.pooling = pooling})};
    const Layer l = layer_of_logits({facts(300, 16, 0), facts(300, 16, 7)}, 16);
    const Kept kept = run_policy(*backend_, config, l);
    for (int64_t h = 0; h < 2; ++h) {
      EXPECT_TRUE(is_selection(kept[h], official_scores(l, config, h), 16, 24,
                               pooling == Pooling::max ? 0.0 : kTolerance));
    }
  }
}

TEST_P(PublishedRules, KvpressWithGroupsAndAveragePooling) {
  for (int64_t n_group : {1, 4}) {
    for (double kept_share : {0.1, 0.25, 0.5}) {
      PolicyConfig config;
      config.ratio = kept_share;  // kvpress's compression_ratio is 1 - ratio
      config.window_size = 32;
      config.params = {{"kernel_size", 5}, {"pooling", "avg"}};
      const Layer l = random_layer(1200, 32, 2 * n_group, 2, 64, DType::f16, 23);
      const int64_t n_kept = static_cast<int64_t>(1200 * kept_share);  // int(L * (1 - ratio))
      const Kept kept = run_policy(*backend_, config, l, DType::f16);
      for (int64_t g = 0; g < 2; ++g) {
        EXPECT_TRUE(is_selection(kept[g], kvpress_scores(l, 5, g), 32, n_kept - 32, kTolerance));
      }
    }
  }
}

TEST_P(PublishedRules, WithMaxPoolingTheOrderOfGroupAndPoolMatters) {
  // Two query heads look at rows 10 and 13. If the mean comes first and then the maximum, both
  // facts count equally. If the maximum comes first, the rows between them, which both reach, score
  // twice.
  Layer l;
  l.n_head = 2, l.n_head_kv = 1, l.head_dim = 8, l.n_tokens = 60, l.n_window = 4;
  l.q.assign(4 * 2 * 8, 0.0f);
  l.k.assign(60 * 8, 0.0f);
  for (size_t i = 0; i < 4; ++i) l.q[(i * 2) * 8] = 1.0f, l.q[(i * 2 + 1) * 8 + 1] = 1.0f;
  l.k[10 * 8] = 5.0f;
  l.k[13 * 8 + 1] = 5.0f;
  const PolicyConfig config{.budget = 4 + 4, .window_size = 4};
  EXPECT_EQ(run_policy(*backend_, config, l), (Kept{{7, 8, 9, 10, 56, 57, 58, 59}}));
  Scores other(56, 0.0);  // pooled per query head, then the mean
  for (int64_t h = 0; h < 2; ++h) {
    const Scores pooled = oracle_pool(oracle_votes(l, h), 7, Pooling::max);
    for (size_t j = 0; j < other.size(); ++j) other[j] += pooled[j] / 2;
  }
  EXPECT_EQ(oracle_top(other, 4), (std::vector<int32_t>{10, 11, 12, 13}));
}

}  // namespace
}  // namespace snapkv::test
