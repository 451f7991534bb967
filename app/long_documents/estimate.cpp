// SPDX-License-Identifier: MIT
#include "long_documents/estimate.h"

#include <algorithm>

namespace snapkv::long_documents {
namespace {

/// Operations of a prompt's matrix products and of its attention, for n tokens together: 2 for each
/// weight, and 4 for each element of a head at each of n / 2 positions on average.
double work(const ModelInfo& model, int64_t n) {
  const auto tokens = static_cast<double>(n);
  const auto n_embedding = static_cast<double>(model.n_vocab) * static_cast<double>(model.n_embd);
  const double n_weights = std::max(static_cast<double>(model.n_active_params) - n_embedding, 1.0);
  const auto width = static_cast<double>(model.n_head) * static_cast<double>(model.head_dim);
  const double attention = 2 * tokens * static_cast<double>(model.n_layer) * width;
  return tokens * (2 * n_weights + attention);
}

}  // namespace

double estimate_seconds(const ModelInfo& model, const Reading& shorter, const Reading& longer,
                        const std::vector<TextPart>& parts) {
  const double more = work(model, longer.n_tokens) - work(model, shorter.n_tokens);
  double rate = longer.seconds / std::max(work(model, longer.n_tokens), 1.0);
  double fixed = 0;
  if (more > 0 && longer.seconds > shorter.seconds) {
    const double slope = (longer.seconds - shorter.seconds) / more;
    const double rest = shorter.seconds - slope * work(model, shorter.n_tokens);
    if (rest >= 0) {
      fixed = rest;
      rate = slope;
    }
  }
  double seconds = 0;
  for (const TextPart& part : parts) seconds += fixed + rate * work(model, part.n_tokens);
  return seconds;
}

}  // namespace snapkv::long_documents
