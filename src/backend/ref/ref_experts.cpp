// SPDX-License-Identifier: MIT
// Mixtures of experts as plain loops; ops.def defines them.
#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>

#include "backend/ref/ref_access.h"
#include "backend/ref/ref_ops.h"

namespace snapkv::ref {
namespace {

using Values = std::vector<double>;

/// The indices of the k highest values, best first; ties go to the lower index, NaN ranks lowest.
std::vector<int32_t> highest(const Values& values, int64_t k) {
  std::vector<int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    if (std::isnan(values[a]) || std::isnan(values[b])) return !std::isnan(values[a]);
    return values[a] > values[b];
  });
  order.resize(k);
  return order;
}

/// exp(x_i - max) / sum over the values at `indices`; 0 elsewhere.
Values softmax_at(const Values& x, const std::vector<int32_t>& indices) {
  double max = x[indices[0]], sum = 0.0;
  for (int32_t i : indices) max = std::max(max, x[i]);
  Values out(x.size(), 0.0);
  for (int32_t i : indices) sum += out[i] = std::exp(x[i] - max);
  for (int32_t i : indices) out[i] /= sum;
  return out;
}

Values scores_of(const Values& logits, ExpertScore kind) {
  if (kind == ExpertScore::softmax_of_chosen || kind == ExpertScore::sparse_mixer) return logits;
  if (kind == ExpertScore::softmax) {
    return softmax_at(logits, highest(logits, std::ssize(logits)));
  }
  Values scores;
  for (double v : logits) scores.push_back(1.0 / (1.0 + std::exp(-v)));
  return scores;
}

/// The score of each chosen expert: exp(m - m) / sum of exp(s - m) over the logits s near m, its
/// own.
Values mix_sparsely(const Values& logits, const std::vector<int32_t>& chosen, double jitter) {
  Values scores(logits.size(), 0.0);
  std::vector<bool> before(logits.size(), false);
  for (int32_t best : chosen) {
    const double most = logits[best];
    double sum = 0.0;
    for (size_t e = 0; e < logits.size(); ++e) {
      const bool is_far = (most - logits[e]) / std::max(std::abs(logits[e]), most) > 2.0 * jitter;
      if (!before[e] && !is_far) sum += std::exp(logits[e] - most);
    }
    scores[best] = 1.0 / sum;
    before[best] = true;
  }
  return scores;
}

/// Puts the experts of all but the best groups below all others.
void drop_groups(Values& keys, const Routing& rule) {
  const int64_t size = std::ssize(keys) / rule.n_group;
  Values sums;
  for (int64_t g = 0; g < rule.n_group; ++g) {
    const Values group(keys.begin() + g * size, keys.begin() + (g + 1) * size);
    double sum = 0.0;
    for (int32_t i : highest(group, std::min(rule.n_group_best, size))) sum += group[i];
    sums.push_back(sum);
  }
  const std::vector<int32_t> kept = highest(sums, rule.n_group_used);
  for (int64_t i = 0; i < std::ssize(keys); ++i) {
    const bool is_kept = std::find(kept.begin(), kept.end(), i / size) != kept.end();
    if (!is_kept) keys[i] = -std::numeric_limits<double>::infinity();
  }
}

void choose(const Values& logits, const ExpertChoice& c, int32_t* experts, float* weights) {
  const int64_t n_used = c.weights.shape[1];
  Values scores = scores_of(logits, c.rule.score), keys = logits;
  if (c.bias || c.rule.n_group > 1) keys = scores;
  for (int64_t i = 0; c.bias && i < std::ssize(keys); ++i) keys[i] += *c.bias.at<const float>(i);
  if (c.rule.n_group > 1) drop_groups(keys, c.rule);
  const std::vector<int32_t> chosen = highest(keys, n_used);
  if (c.rule.score == ExpertScore::softmax_of_chosen) scores = softmax_at(logits, chosen);
  if (c.rule.score == ExpertScore::sparse_mixer) {
    scores = mix_sparsely(logits, chosen, static_cast<double>(c.rule.jitter));
  }
  double sum = 0.0;
  for (int32_t e : chosen) sum += scores[e];
  for (int64_t i = 0; i < n_used; ++i) {
    experts[i] = chosen[i];
    weights[i] = static_cast<float>(scores[chosen[i]] / (c.rule.normalized ? sum : 1.0) *
                                    static_cast<double>(c.rule.scale));
    if (c.factors) weights[i] *= *c.factors.at<const float>(chosen[i]);
  }
}

}  // namespace

void route(const ExpertChoice& c) {
  for (int64_t t = 0; t < c.logits.shape[0]; ++t) {
    choose(get_row(c.logits.at<const void>(t), DType::f32, c.logits.shape[1]), c,
           c.experts.at<int32_t>(t), c.weights.at<float>(t));
  }
}

namespace {

/// expert(x) of one row, in memory.out: products and activation round as those ops do.
void run_expert(const Expert& e, const ExpertProducts& p, const Tensor& x) {
  const ExpertMemory& m = p.memory;
  const Tensor up = m.up.slice(0, 1), act = m.act.slice(0, 1), out = m.out.slice(0, 1);
  if (e.gate) {
    const Tensor gate = m.gate.slice(0, 1);
    project(x, std::array{Projection{e.gate, e.gate_bias, gate}, Projection{e.up, e.up_bias, up}});
    if (p.limits) {
      clamp(gate, -std::numeric_limits<float>::infinity(), p.limits.gate);
      clamp(up, -p.limits.up, p.limits.up);
    }
    activate(p.activation, gate, up, act);
  } else {
    project(x, std::array{Projection{e.up, e.up_bias, up}});
    activate(p.activation, up, {}, act);
  }
  project(act, std::array{Projection{e.down, e.down_bias, out}});
}

}  // namespace

// out[t, o] += factor * sum_i weights[t, i] * expert_{chosen[t, i]}(x[t])[o], experts ascending
void project_experts(const ExpertProducts& p) {
  const int64_t n_used = p.weights.shape[1];
  for (int64_t t = 0; t < p.x.shape[0]; ++t) {
    const int32_t* chosen = p.chosen.at<const int32_t>(t);
    std::vector<int32_t> order(n_used);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](int32_t a, int32_t b) { return chosen[a] < chosen[b]; });
    for (int32_t i : order) {
      run_expert(p.experts[chosen[i]], p, p.x.slice(t, t + 1));
      const int32_t row = static_cast<int32_t>(t);
      const float weight = p.factor * p.weights.at<const float>(t)[i];
      add_rows(p.out, p.memory.out.slice(0, 1), {&row, 1}, {&weight, 1});
    }
  }
}

}  // namespace snapkv::ref
