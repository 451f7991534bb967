// SPDX-License-Identifier: MIT
#include "model/blocks/expert_routes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace snapkv {

void choose_experts(std::span<const float> logits, bool normalized, std::span<int32_t> experts,
                    std::span<float> weights) {
  const auto n_expert = static_cast<int32_t>(logits.size());
  for (size_t i = 0; i < experts.size(); ++i) {
    const auto taken = experts.first(i);
    int32_t best = -1;
    for (int32_t e = 0; e < n_expert; ++e) {
      if (std::find(taken.begin(), taken.end(), e) != taken.end()) continue;
      if (best < 0 || logits[e] > logits[best]) best = e;
    }
    experts[i] = best;
  }
  const float most = logits[experts[0]];
  double sum = 0;
  for (size_t i = 0; i < experts.size(); ++i) {
    weights[i] = std::exp(logits[experts[i]] - most);
    sum += weights[i];
  }
  if (!normalized) {
    sum = 0;
    for (const float logit : logits) sum += std::exp(logit - most);
  }
  for (float& weight : weights) weight = static_cast<float>(weight / sum);
}

std::span<float> ExpertRoutes::logits(int64_t n_tokens, int64_t n_expert) {
  n_tokens_ = n_tokens;
  n_expert_ = n_expert;
  logits_.resize(n_tokens * n_expert);
  return logits_;
}

void ExpertRoutes::assign_to_first(int64_t n_tokens, int64_t n_expert) {
  begin_.assign(n_expert + 1, n_tokens);
  begin_[0] = 0;
  tokens_.resize(n_tokens);
  std::iota(tokens_.begin(), tokens_.end(), 0);
  weights_.assign(n_tokens, 1.0f);
}

void ExpertRoutes::assign(int64_t n_used, bool normalized) {
  const int64_t n = n_tokens_ * n_used;
  chosen_.resize(n);
  chosen_weights_.resize(n);
  begin_.assign(n_expert_ + 1, 0);
  for (int64_t t = 0; t < n_tokens_; ++t) {
    const std::span<int32_t> experts = std::span(chosen_).subspan(t * n_used, n_used);
    choose_experts(std::span(logits_).subspan(t * n_expert_, n_expert_), normalized, experts,
                   std::span(chosen_weights_).subspan(t * n_used, n_used));
    for (const int32_t e : experts) ++begin_[e + 1];
  }
  for (int64_t e = 0; e < n_expert_; ++e) begin_[e + 1] += begin_[e];
  tokens_.resize(n);
  weights_.resize(n);
  // begin_[e] is where the next token of expert e goes, and in the end where those of e + 1 begin
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = begin_[chosen_[i]]++;
    tokens_[at] = static_cast<int32_t>(i / n_used);
    weights_[at] = chosen_weights_[i];
  }
  std::rotate(begin_.rbegin(), begin_.rbegin() + 1, begin_.rend());
  begin_[0] = 0;
}

}  // namespace snapkv
