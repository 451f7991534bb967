// SPDX-License-Identifier: MIT
// token_logprobs(): the model's own log probabilities of a token and its alternatives, before
// sampling.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "snapkv/sampler.h"

namespace snapkv {

TokenLogprobs token_logprobs(std::span<const float> logits, int32_t id, int n_top) {
  if (id < 0 || id >= std::ssize(logits)) {
    fail(ErrorCode::kUsage, "token {} is not one of the {} that have logits", id, logits.size());
  }
  if (n_top < 0) fail(ErrorCode::kUsage, "n_top must be 0 or more, not {}", n_top);
  std::vector<int32_t> ids;
  float best = -std::numeric_limits<float>::infinity();
  for (int32_t i = 0; i < std::ssize(logits); ++i) {
    const float logit = logits[static_cast<size_t>(i)];
    if (!std::isfinite(logit)) continue;
    ids.push_back(i);
    best = std::max(best, logit);
  }
  if (ids.empty()) {
    fail(ErrorCode::kRuntime, "none of the {} logits is finite: the model's output is unusable",
         logits.size());
  }
  double total = 0.0;
  for (const int32_t i : ids) total += std::exp(double{logits[static_cast<size_t>(i)]} - best);
  const double log_total = std::log(total) + best;
  const auto logprob = [&](int32_t i) -> TokenLogprob {
    const float logit = logits[static_cast<size_t>(i)];
    return {i, std::isfinite(logit) ? logit - log_total : -std::numeric_limits<double>::infinity()};
  };
  const auto n = std::min<std::ptrdiff_t>(n_top, std::ssize(ids));
  std::partial_sort(ids.begin(), ids.begin() + n, ids.end(), [&](int32_t a, int32_t b) {
    const float left = logits[static_cast<size_t>(a)], right = logits[static_cast<size_t>(b)];
    return left != right ? left > right : a < b;
  });
  TokenLogprobs result;
  result.chosen = logprob(id);
  for (std::ptrdiff_t i = 0; i < n; ++i) result.top.push_back(logprob(ids[static_cast<size_t>(i)]));
  return result;
}

}  // namespace snapkv
