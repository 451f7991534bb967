// SPDX-License-Identifier: MIT
// The policies that observe every query of the prompt, compared with their definitions in f64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "policy/policy.h"
#include "tests/policy/policy_test_util.h"
#include "tests/support/expect_error.h"

namespace snapkv::test {
namespace {

class ObservingPolicies : public testing::TestWithParam<Target> {
 protected:
  std::unique_ptr<Backend> backend_ = make_backend(GetParam());
};
INSTANTIATE_TEST_SUITE_P(, ObservingPolicies, testing::Values(Target::ref, Target::cpu),
                         [](const auto& p) { return target_name(p.param); });

// A layer that knows the queries of its last n_observed tokens; the window's are the last of them.
Layer observed_layer(int64_t n_tokens, int64_t n_observed, int64_t n_window, int64_t n_head,
                     int64_t n_head_kv, int64_t head_dim, DType dtype, uint64_t seed) {
  Layer l = random_layer(n_tokens, n_observed, n_head, n_head_kv, head_dim, dtype, seed);
  l.q_observed = l.q;
  l.n_window = n_window;
  l.q.erase(l.q.begin(), l.q.end() - n_window * n_head * head_dim);
  l.v = random_tensor({n_head_kv, n_tokens, head_dim}, seed + 2000, dtype).values();
  return l;
}

TEST_P(ObservingPolicies, NeedTheirObserver) {
  const Layer l = random_layer(100, 16, 2, 2, 8, DType::f32, 70);
  const TestTensor q({16, 2, 8}, l.q), k({2, 100, 8}, l.k);
  const std::vector<int32_t> n_rows = {100, 100};
  PolicyInput input;
  input.q_window = q;
  input.k = input.v = k;
  input.n_rows = n_rows;
  for (const char* name : {"h2o", "expected-attention", "kvzip"}) {
    const auto policy = Policy::make({.name = name, .budget = 64, .window_size = 16});
    expect_error(ErrorCode::kUsage, {name, "every query"},
                 [&] { policy->make_selector(*backend_)->select(input, 64); });
  }
}

// ---------------------------------------------------------------- h2o

// The attention of query head h to each row, summed over the observed queries.
Scores attention_sums(const Layer& l, int64_t h) {
  const int64_t n = l.n_observed();
  Scores sums(l.n_tokens, 0.0);
  for (int64_t i = 0; i < n; ++i) {
    Scores s;
    for (int64_t j = 0; j <= l.n_tokens - n + i; ++j) {
      s.push_back(std::exp(l.scale *
                           oracle_dot(l.q_observed.data() + (i * l.n_head + h) * l.head_dim,
                                      l.k.data() + (h / l.n_group() * l.n_tokens + j) * l.head_dim,
                                      l.head_dim)));
    }
    double sum = 0.0;
    for (double x : s) sum += x;
    for (size_t j = 0; j < s.size(); ++j) sums[j] += s[j] / sum;
  }
  return sums;
}

TEST_P(ObservingPolicies, H2oKeepsTheRowsOfMostAttention) {
  for (int64_t n_group : {1, 3}) {
    for (int64_t n_observed : {500, 90}) {  // the whole prompt; a second turn
      const PolicyConfig config{.name = "h2o", .budget = 116, .window_size = 16};
      const Layer l = observed_layer(500, n_observed, 16, 2 * n_group, 2, 32, DType::f16, 71);
      const Kept kept = run_policy(*backend_, config, l, DType::f16);
      for (int64_t g = 0; g < 2; ++g) {
        Scores scores(l.n_prefix(), 0.0);
        for (int64_t h = g * n_group; h < (g + 1) * n_group; ++h) {
          const Scores sums = attention_sums(l, h);
          for (size_t j = 0; j < scores.size(); ++j) scores[j] += sums[j];
        }
        EXPECT_TRUE(is_selection(kept[g], scores, 16, 100, kTolerance));
      }
    }
  }
}

// ---------------------------------------------------------------- expected-attention

using Matrix = std::vector<std::vector<double>>;

// The rotation to position p, as a matrix.
Matrix rotation(const RopeFrequencies& rope, size_t head_dim, double p) {
  Matrix r(head_dim, std::vector<double>(head_dim, 0.0));
  for (size_t i = 0; i < head_dim; ++i) r[i][i] = 1.0;
  const size_t n = rope.inv_freq.size();
  for (size_t i = 0; i < n; ++i) {
    const size_t a = rope.layout == RopeLayout::norm ? 2 * i : i;
    const size_t b = rope.layout == RopeLayout::norm ? 2 * i + 1 : i + n;
    const double angle = p * rope.inv_freq[i];
    r[a][a] = r[b][b] = std::cos(angle);
    r[a][b] = -std::sin(angle);
    r[b][a] = std::sin(angle);
  }
  return r;
}

Scores times(const Matrix& m, const Scores& x) {
  Scores out;
  for (const Scores& row : m) {
    double sum = 0.0;
    for (size_t i = 0; i < x.size(); ++i) sum += row[i] * x[i];
    out.push_back(sum);
  }
  return out;
}

// log E exp(scale * k . q) for a future query of head h, from the deviations of all observed
// queries, rotated by the mean rotation, without a covariance matrix.
Scores expected_softmax(const Layer& l, const RopeFrequencies& rope, int64_t h, int n_future,
                        int64_t n_sink) {
  const size_t d = l.head_dim;
  Matrix queries;
  for (int64_t i = 0; i < l.n_observed(); ++i) {
    const int64_t pos = l.n_tokens - l.n_observed() + i;
    if (pos < n_sink) continue;
    const float* q = l.q_observed.data() + (i * l.n_head + h) * l.head_dim;
    queries.push_back(
        times(rotation(rope, d, -static_cast<double>(pos)), Scores(q, q + l.head_dim)));
  }
  Matrix mean_rotation(d, Scores(d, 0.0));
  for (int f = 0; f < n_future; ++f) {
    const Matrix r = rotation(rope, d, static_cast<double>(l.n_tokens) + f);
    for (size_t i = 0; i < d; ++i) {
      for (size_t j = 0; j < d; ++j) mean_rotation[i][j] += r[i][j] / n_future;
    }
  }
  Scores mean(d, 0.0);
  for (Scores& q : queries) {
    q = times(mean_rotation, q);
    for (size_t i = 0; i < d; ++i) mean[i] += q[i] / static_cast<double>(queries.size());
  }
  Scores z;
  for (int64_t j = n_sink; j < l.n_tokens; ++j) {
    const float* k = l.k.data() + (h / l.n_group() * l.n_tokens + j) * l.head_dim;
    double linear = 0.0, variance = 0.0;
    for (size_t i = 0; i < d; ++i) linear += k[i] * mean[i];
    for (const Scores& q : queries) {
      double deviation = -linear;
      for (size_t i = 0; i < d; ++i) deviation += k[i] * q[i];
      variance += deviation * deviation / static_cast<double>(queries.size());
    }
    z.push_back(std::exp(l.scale * linear + l.scale * l.scale * variance / 2));
  }
  double sum = 0.0;
  for (double x : z) sum += x;
  for (double& x : z) x /= sum;
  z.insert(z.begin(), n_sink, 0.0);
  return z;
}

TEST_P(ObservingPolicies, ExpectedAttentionEqualsTheDefinition) {
  constexpr int64_t kTokens = 300, kDim = 16;
  const std::vector<double> frequencies = {1.0, 0.3, 0.05, 0.01, 0.002, 0.0003};  // 12 of 16 turn
  for (RopeLayout layout : {RopeLayout::norm, RopeLayout::neox}) {
    for (int64_t n_group : {1, 3}) {
      for (int64_t n_observed : {kTokens, int64_t{60}}) {
        const RopeFrequencies rope{frequencies, layout};
        const PolicyConfig config{.name = "expected-attention",
                                  .budget = 84,
                                  .window_size = 16,
                                  .params = {{"n_future", 40}}};
        Layer l = observed_layer(kTokens, n_observed, 16, 2 * n_group, 2, kDim, DType::f16, 72);
        for (size_t i = 3; i < l.q_observed.size(); i += kDim) l.q_observed[i] += 3.0f;  // a mean
        l.q.assign(l.q_observed.end() - std::ssize(l.q), l.q_observed.end());
        const Kept kept =
            run_policy(*backend_, *Policy::make(config), l, DType::f16, 0, 1, {}, rope);
        for (int64_t g = 0; g < 2; ++g) {
          Scores scores(l.n_prefix(), 0.0);
          for (int64_t h = g * n_group; h < (g + 1) * n_group; ++h) {
            const Scores one = expected_softmax(l, rope, h, 40, 4);
            for (size_t j = 0; j < scores.size(); ++j) scores[j] += one[j];
          }
          for (size_t j = 0; j < scores.size(); ++j) {
            const float* v = l.v.data() + (g * kTokens + j) * kDim;
            scores[j] *= std::sqrt(oracle_dot(v, v, kDim));
          }
          for (size_t j = 0; j < 4; ++j) scores[j] = 1e30;  // the sinks
          EXPECT_TRUE(is_selection(kept[g], scores, 16, 68, kTolerance));
        }
      }
    }
  }
}

TEST_P(ObservingPolicies, ExpectedAttentionNeedsValues) {
  const Layer l = random_layer(100, 16, 2, 2, 8, DType::f32, 73);
  const auto policy = Policy::make({.name = "expected-attention", .budget = 64, .window_size = 16});
  const TestTensor q({16, 2, 8}, l.q), k({2, 100, 8}, l.k);
  const std::vector<int32_t> n_rows = {100, 100};
  const auto selector = make_selector(*backend_, *policy, l, k, n_rows, {});
  PolicyInput input;
  input.q_window = q;
  input.k = k;
  input.n_rows = n_rows;
  expect_error(ErrorCode::kUsage, {"expected-attention", "values"},
               [&] { selector->select(input, 64); });
}

}  // namespace
}  // namespace snapkv::test
