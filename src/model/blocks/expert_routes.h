// SPDX-License-Identifier: MIT
// ExpertRoutes: which experts the tokens of a chunk go to, grouped by expert.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace snapkv {

/// The experts of one token are those of its highest logits (ties: the lower index), in descending
/// order; their weights are the softmax of all logits, divided by their sum if `normalized`
/// (arXiv 2401.04088, section 2.1).
void choose_experts(std::span<const float> logits, bool normalized, std::span<int32_t> experts,
                    std::span<float> weights);

class ExpertRoutes {
 public:
  /// Where assign() reads them: [n_tokens, n_expert].
  std::span<float> logits(int64_t n_tokens, int64_t n_expert);
  /// Chooses n_used experts for each token.
  void assign(int64_t n_used, bool normalized);

  /// Gives all of n_tokens to the first expert, for dry runs: no group of tokens is larger.
  void assign_to_first(int64_t n_tokens, int64_t n_expert);

  /// The tokens of all experts, one expert after another.
  std::span<const int32_t> tokens() const { return tokens_; }
  /// The tokens that chose an expert, ascending, are tokens()[begin(expert) ... begin(expert + 1)).
  int64_t begin(int64_t expert) const { return begin_[expert]; }
  /// What each of tokens() multiplies the expert's output with.
  std::span<const float> weights() const { return weights_; }

 private:
  int64_t n_tokens_ = 0, n_expert_ = 0;
  std::vector<float> logits_;          // [n_tokens, n_expert]
  std::vector<int32_t> chosen_;        // [n_tokens, n_used]
  std::vector<float> chosen_weights_;  // [n_tokens, n_used]
  std::vector<int64_t> begin_;         // [n_expert + 1]
  std::vector<int32_t> tokens_;        // [n_tokens * n_used]
  std::vector<float> weights_;         // [n_tokens * n_used]
};

}  // namespace snapkv
