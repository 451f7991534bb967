// SPDX-License-Identifier: MIT
// SnapKV's rule as plain loops in f64, written for the tests from the definition in
// docs/architecture.md, without code from src/: scores, softmax, vote, group, pool, rank. Also the
// rules of the paper's code and of kvpress, which do the same steps in other orders.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "backend/ops.h"
#include "snapkv/policy.h"

namespace snapkv::test {

/// One layer: q [W, n_head, head_dim], k [n_head_kv, L, head_dim], plain f32 values.
struct Layer {
  int64_t n_head = 1, n_head_kv = 1, head_dim = 1, n_tokens = 0, n_window = 0;
  float scale = 1.0f;
  std::vector<float> q, k;
  // For some policies: values, shaped like k (empty: k itself); queries of the last n_observed
  // tokens, shaped like q (empty: q itself).
  std::vector<float> v, q_observed;
  int64_t n_observed() const {
    return q_observed.empty() ? n_window : std::ssize(q_observed) / n_head / head_dim;
  }
  int64_t n_group() const { return n_head / n_head_kv; }
  int64_t n_prefix() const { return n_tokens - n_window; }
};

using Scores = std::vector<double>;  // for the rows before the window

/// A dot product in f64 as two sums, since a single chain of additions would take twice as long.
inline double oracle_dot(const float* a, const float* b, int64_t n) {
  double even = 0.0, odd = n % 2 == 1 ? static_cast<double>(a[n - 1]) * b[n - 1] : 0.0;
  for (int64_t i = 0; i < n / 2; ++i) {
    even += static_cast<double>(a[2 * i]) * b[2 * i];
    odd += static_cast<double>(a[2 * i + 1]) * b[2 * i + 1];
  }
  return even + odd;
}

/// Steps 2 to 4: the attention of query head h to the prefix's columns, summed over the window.
inline Scores oracle_votes(const Layer& l, int64_t h) {
  Scores votes(l.n_prefix(), 0.0);
  const float* keys = l.k.data() + h / l.n_group() * l.n_tokens * l.head_dim;
  for (int64_t i = 0; i < l.n_window; ++i) {
    const float* query = l.q.data() + (i * l.n_head + h) * l.head_dim;
    const int64_t n_visible = l.n_prefix() + i + 1;
    Scores s(n_visible);
    double max = -std::numeric_limits<double>::infinity(), sum = 0.0;
    for (int64_t j = 0; j < n_visible; ++j) {
      const double score = oracle_dot(query, keys + j * l.head_dim, l.head_dim) * l.scale;
      s[j] = score;
      max = std::max(max, score);
    }
    for (double& v : s) sum += v = std::exp(v - max);
    for (size_t j = 0; j < votes.size(); ++j) votes[j] += s[j] / sum;
  }
  return votes;
}

/// Step 6. Beyond the edges there is nothing (max), or zeros that count (avg).
inline Scores oracle_pool(const Scores& v, int kernel_size, Pooling pooling) {
  Scores out;
  const int64_t n = std::ssize(v), half = (kernel_size - 1) / 2;
  for (int64_t j = 0; j < n; ++j) {
    Scores padded;
    for (int64_t i = j - half; i <= j + half; ++i) {
      const bool inside = 0 <= i && i < n;
      const double pad = pooling == Pooling::max ? -std::numeric_limits<double>::infinity() : 0.0;
      padded.push_back(inside ? v[i] : pad);
    }
    double sum = 0.0;
    for (double x : padded) sum += x;
    out.push_back(pooling == Pooling::max ? *std::max_element(padded.begin(), padded.end())
                                          : sum / kernel_size);
  }
  return out;
}

/// The parameters of steps 5 and 6, with the paper's defaults.
struct VoteRule {
  int kernel_size = 7;
  Pooling pooling = Pooling::max;
  GroupReduce group = GroupReduce::mean;
};

/// The same as parameters of "snapkv" and of the policies that vote like it.
inline PolicyParams params_of(const VoteRule& rule) {
  return {{"kernel_size", rule.kernel_size},
          {"pooling", rule.pooling == Pooling::avg ? "avg" : "max"},
          {"group", rule.group == GroupReduce::max ? "max" : "mean"}};
}

inline VoteRule rule_of(const PolicyConfig& config) {
  VoteRule rule;
  for (const auto& [name, value] : config.params) {
    if (name == "kernel_size") rule.kernel_size = static_cast<int>(std::get<int64_t>(value));
    if (name == "pooling" && value == PolicyValue("avg")) rule.pooling = Pooling::avg;
    if (name == "group" && value == PolicyValue("max")) rule.group = GroupReduce::max;
  }
  return rule;
}

/// Steps 2 to 6 for KV head g: first group, then pool.
inline Scores oracle_scores(const Layer& l, const PolicyConfig& config, int64_t g) {
  const VoteRule c = rule_of(config);
  Scores group(l.n_prefix(),
               c.group == GroupReduce::max ? -std::numeric_limits<double>::infinity() : 0.0);
  for (int64_t h = g * l.n_group(); h < (g + 1) * l.n_group(); ++h) {
    const Scores votes = oracle_votes(l, h);
    for (size_t j = 0; j < group.size(); ++j) {
      if (c.group == GroupReduce::max) {
        group[j] = std::max(group[j], votes[j]);
      } else {
        group[j] += votes[j] / static_cast<double>(l.n_group());
      }
    }
  }
  return oracle_pool(group, c.kernel_size, c.pooling);
}

/// The paper's code for one query head: sum over W, pool, topk(C - W).
inline Scores official_scores(const Layer& l, const PolicyConfig& config, int64_t h) {
  const VoteRule c = rule_of(config);
  return oracle_pool(oracle_votes(l, h), c.kernel_size, c.pooling);
}

/// kvpress's SnapKVPress for one KV head: mean over W, avg pool per query head, mean over the
/// group.
inline Scores kvpress_scores(const Layer& l, int kernel_size, int64_t g) {
  Scores out(l.n_prefix(), 0.0);
  for (int64_t h = g * l.n_group(); h < (g + 1) * l.n_group(); ++h) {
    Scores votes = oracle_votes(l, h);
    for (double& v : votes) v /= static_cast<double>(l.n_window);
    const Scores pooled = oracle_pool(votes, kernel_size, Pooling::avg);
    for (size_t j = 0; j < out.size(); ++j) out[j] += pooled[j];
  }
  for (double& v : out) v /= static_cast<double>(l.n_group());
  return out;
}

/// Step 7: the k highest, in ascending order of positions; ties go to the lower position.
inline std::vector<int32_t> oracle_top(const Scores& scores, int64_t k) {
  std::vector<std::pair<double, int32_t>> order;
  for (size_t j = 0; j < scores.size(); ++j) {
    order.emplace_back(-scores[j], static_cast<int32_t>(j));
  }
  std::sort(order.begin(), order.end());
  std::vector<int32_t> top;
  for (int64_t i = 0; i < k; ++i) top.push_back(order[i].second);
  std::sort(top.begin(), top.end());
  return top;
}

/// f32 votes of 32 queries over 20000 rows, compared with f64: a few units of 6e-8 in the score,
/// its exponential and the denominator. Rows this close to the cut may be exchanged.
inline constexpr double kTolerance = 1e-5;

/// Checks that `kept` is the top k of `scores`, followed by the window. Rounding may exchange only
/// rows whose score is within `tolerance` (relative) of the k-th highest.
inline testing::AssertionResult is_selection(const std::vector<int32_t>& kept, const Scores& scores,
                                             int64_t n_window, int64_t k, double tolerance) {
  const int64_t n_prefix = std::ssize(scores);
  if (std::ssize(kept) != k + n_window) {
    return testing::AssertionFailure() << kept.size() << " rows kept, not " << k + n_window;
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    const int64_t w = static_cast<int64_t>(i) - k;  // >= 0 in the window
    if (w >= 0 ? kept[i] != n_prefix + w : kept[i] < 0 || kept[i] >= n_prefix) {
      return testing::AssertionFailure() << "row " << i << " of the selection is " << kept[i];
    }
    if (i > 0 && kept[i] <= kept[i - 1]) {
      return testing::AssertionFailure() << "not ascending at " << i;
    }
  }
  const std::vector<int32_t> expected = oracle_top(scores, k);
  double cut = std::numeric_limits<double>::infinity();
  for (int32_t j : expected) cut = std::min(cut, scores[j]);
  std::vector<int32_t> differ;
  std::set_symmetric_difference(kept.begin(), kept.begin() + k, expected.begin(), expected.end(),
                                std::back_inserter(differ));
  for (int32_t j : differ) {
    const double score = scores[j];
    if (tolerance == 0.0 || std::abs(score - cut) > tolerance * std::abs(cut)) {
      return testing::AssertionFailure() << differ.size() << " rows differ, as row " << j
                                         << " of score " << score << "; the cut is at " << cut;
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace snapkv::test
