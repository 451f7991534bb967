// SPDX-License-Identifier: MIT
// Chooses the next token from logits. Deterministic for a given seed, on every machine and
// compiler.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace snapkv {

class GrammarMatcher;

/// A number added to a token's logit before all other steps.
struct LogitBias {
  int32_t id = 0;
  double bias = 0.0;  ///< up to kMostBias in both directions; -infinity: never this token
};

/// The steps apply in this order, as in llama.cpp: grammar, logit bias, penalties, top-k,
/// typical-p, top-p, min-p, temperature, draw. sampler_option_table() (options.h) has the ranges.
struct SamplerConfig {
  static constexpr double kMostBias = 100.0;
  static constexpr int64_t kRandomSeed = -1;

  double temperature = 0.8;     ///< 0: greedy (the highest logit, ties to the lower id)
  int top_k = 40;               ///< 0: off
  double typical_p = 1.0;       ///< 1: off. Locally typical sampling (arXiv 2202.00666)
  double top_p = 0.95;          ///< 1: off. Nucleus sampling (arXiv 1904.09751)
  double min_p = 0.05;          ///< 0: off. Keeps p >= min_p * max p (arXiv 2407.01082)
  double repeat_penalty = 1.0;  ///< 1: off. Divides positive, multiplies negative logits of the
                                ///< last repeat_last_n tokens (arXiv 1909.05858, section 4.1)
  int repeat_last_n = 64;          ///< how far all penalties look back; 0: off, -1: all
  double presence_penalty = 0.0;   ///< subtracted from the logit of every token among the last
                                   ///< repeat_last_n
  double frequency_penalty = 0.0;  ///< same, once per occurrence of the token
  int64_t seed = 0;                ///< any number; kRandomSeed: another one for each Sampler
  std::vector<LogitBias> logit_bias = {};  ///< those of the same token are added up
};

/// The model's own probability of a token: the softmax of the original logits, before any step of a
/// sampler.
struct TokenLogprob {
  int32_t id = 0;
  double logprob = 0.0;  ///< natural logarithm; -infinity for logits that are not finite
};
struct TokenLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;  ///< most likely first, ties to the lower id
};
/// The log probabilities of `id` and of the `n_top` most likely tokens (fewer if fewer logits are
/// finite). Throws Error{kUsage} if `id` is not a token or n_top < 0, Error{kRuntime} if no logit
/// is finite.
TokenLogprobs token_logprobs(std::span<const float> logits, int32_t id, int n_top);

/// The seed itself or, for kRandomSeed, a random one from 0 to 2^31 - 1, to be told and used again.
int64_t drawn_seed(int64_t seed);

class Sampler {
 public:
  /// Throws Error{kUsage} naming the field whose value is out of range.
  explicit Sampler(const SamplerConfig& config);
  ~Sampler();
  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;

  /// Picks a token and records it for the penalties and the grammar. NaN logits are never picked.
  /// Throws Error{kRuntime} if no logit is finite or no token is allowed.
  int32_t sample(std::span<const float> logits);
  /// Adds tokens (the prompt's) to the penalties' history.
  void accept(std::span<const int32_t> tokens);
  /// All tokens that were added or picked.
  const std::vector<int32_t>& history() const;

  /// From now on only tokens that the matcher allows are picked, and the matcher advances with
  /// them. The answer continues from the matcher's current state.
  void set_grammar(GrammarMatcher matcher);
  /// From now on every token may be picked again.
  void clear_grammar();
  /// Null if there is none.
  const GrammarMatcher* grammar() const;

 private:
  struct Impl;
  Impl& state() const;  // throws Error{kUsage} if the sampler was moved from
  std::unique_ptr<Impl> impl_;
};

}  // namespace snapkv
