// SPDX-License-Identifier: MIT
// route(): the choice of experts; backend/ops.def defines it. The cost is that of reading the
// logits n_used times from the first-level cache, so plain loops do. Threads share tokens.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "backend/cpu/cpu_ops.h"

namespace snapkv::cpu {
namespace {

constexpr float kLeast = -std::numeric_limits<float>::infinity();
/// With fewer logits than this, waking the other threads takes longer than the work.
constexpr int64_t kParallelLogits = 16 * 1024;

using Values = std::array<float, kMostExperts>;

/// Writes the k highest of values[0, n) to `best`, best first; ties go to the lower index, and NaN
/// ranks lowest.
void take_highest(const float* values, int64_t n, int64_t k, int32_t* best) {
  std::array<bool, kMostExperts> taken;
  std::fill_n(taken.begin(), n, false);
  for (int64_t i = 0; i < k; ++i) {
    int64_t at = -1;
    for (int64_t e = 0; e < n; ++e) {
      if (taken[e]) continue;
      if (at < 0 || values[e] > values[at] || (std::isnan(values[at]) && !std::isnan(values[e]))) {
        at = e;
      }
    }
    taken[at] = true;
    best[i] = static_cast<int32_t>(at);
  }
}

/// out[i] = exp(x[at[i]] - max) / sum, or of all n values without `at`.
void softmax_at(const float* x, const int32_t* at, int64_t n, float* out) {
  const auto value = [&](int64_t i) { return x[at != nullptr ? at[i] : i]; };
  float max = value(0);
  for (int64_t i = 1; i < n; ++i) max = std::max(max, value(i));
  double sum = 0.0;
  for (int64_t i = 0; i < n; ++i) {
    out[i] = std::exp(value(i) - max);
    sum += static_cast<double>(out[i]);
  }
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(out[i] / sum);
}

/// The weights of ExpertScore::sparse_mixer of the experts at chosen[0, k), best first.
void mix_sparsely(const float* logits, int64_t n, float jitter, const int32_t* chosen, int64_t k,
                  float* out) {
  std::array<bool, kMostExperts> before;
  std::fill_n(before.begin(), n, false);
  for (int64_t i = 0; i < k; ++i) {
    const float most = logits[chosen[i]];
    double sum = 0.0;
    for (int64_t e = 0; e < n; ++e) {
      const float distance = (most - logits[e]) / std::max(std::abs(logits[e]), most);
      if (before[e] || distance > 2.0f * jitter) continue;
      sum += static_cast<double>(std::exp(logits[e] - most));
    }
    out[i] = static_cast<float>(1.0 / sum);
    before[chosen[i]] = true;
  }
}

void compute_scores(const float* logits, int64_t n, ExpertScore kind, float* scores) {
  if (kind == ExpertScore::softmax) return softmax_at(logits, nullptr, n, scores);
  for (int64_t e = 0; e < n; ++e) {
    scores[e] = kind == ExpertScore::sigmoid ? 1.0f / (1.0f + std::exp(-logits[e])) : logits[e];
  }
}

/// Puts the experts of all but the best groups below all others.
void drop_groups(const Routing& rule, int64_t n, float* keys) {
  const int64_t size = n / rule.n_group;
  Values sums;
  std::array<int32_t, kMostExperts> kept;
  for (int64_t g = 0; g < rule.n_group; ++g) {
    int32_t best[2];
    const int64_t n_best = std::min(rule.n_group_best, size);
    take_highest(keys + g * size, size, n_best, best);
    sums[g] = 0.0f;
    for (int64_t i = 0; i < n_best; ++i) sums[g] += keys[g * size + best[i]];
  }
  take_highest(sums.data(), rule.n_group, rule.n_group_used, kept.data());
  const auto end = kept.begin() + rule.n_group_used;
  for (int64_t g = 0; g < rule.n_group; ++g) {
    const bool is_kept = std::find(kept.begin(), end, static_cast<int32_t>(g)) != end;
    if (!is_kept) std::fill_n(keys + g * size, size, kLeast);
  }
}

void route_token(const ExpertChoice& c, int64_t t) {
  const int64_t n = c.logits.shape[1], n_used = c.weights.shape[1];
  const float* logits = c.logits.at<const float>(t);
  int32_t* chosen = c.experts.at<int32_t>(t);
  float* weights = c.weights.at<float>(t);
  Values scores, keys;
  compute_scores(logits, n, c.rule.score, scores.data());
  if (c.bias || c.rule.n_group > 1) {
    const float* bias = c.bias ? static_cast<const float*>(c.bias.data) : nullptr;
    for (int64_t e = 0; e < n; ++e) keys[e] = scores[e] + (bias != nullptr ? bias[e] : 0.0f);
    if (c.rule.n_group > 1) drop_groups(c.rule, n, keys.data());
    take_highest(keys.data(), n, n_used, chosen);
  } else {
    take_highest(logits, n, n_used, chosen);
  }
  if (c.rule.score == ExpertScore::softmax_of_chosen) {
    softmax_at(logits, chosen, n_used, weights);
  } else if (c.rule.score == ExpertScore::sparse_mixer) {
    mix_sparsely(logits, n, c.rule.jitter, chosen, n_used, weights);
  } else {
    for (int64_t i = 0; i < n_used; ++i) weights[i] = scores[chosen[i]];
  }
  float sum = 1.0f;
  if (c.rule.normalized) {
    sum = 0.0f;
    for (int64_t i = 0; i < n_used; ++i) sum += weights[i];
  }
  for (int64_t i = 0; i < n_used; ++i) {
    weights[i] = weights[i] / sum * c.rule.scale;
    if (c.factors) weights[i] *= *c.factors.at<const float>(chosen[i]);
  }
}

}  // namespace

void route(const CpuContext& ctx, const ExpertChoice& c) {
  const int64_t n = c.logits.shape[0];
#pragma omp parallel for num_threads(ctx.n_threads) if (n > 1 && \
                                                        c.logits.numel() >= kParallelLogits)
  for (int64_t t = 0; t < n; ++t) route_token(c, t);
}

}  // namespace snapkv::cpu
