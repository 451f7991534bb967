// SPDX-License-Identifier: MIT
// Choosing the next token from logits. Deterministic for a seed, on every machine and compiler.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace snapkv {

/// The steps apply in this order, as in llama.cpp: repetition penalty, top-k, top-p, min-p,
/// temperature, draw.
struct SamplerConfig {
  static constexpr double kMostTemperature = 1000.0;
  static constexpr double kLeastPenalty = 0.001, kMostPenalty = 1000.0;

  double temperature = 0.8;     ///< up to kMostTemperature; 0: greedy (the highest logit, ties to
                                ///< the lower id)
  int top_k = 40;               ///< 0: off
  double top_p = 0.95;          ///< 1: off. Nucleus sampling (arXiv 1904.09751)
  double min_p = 0.05;          ///< 0: off. Keeps p >= min_p * max p (arXiv 2407.01082)
  double repeat_penalty = 1.0;  ///< kLeastPenalty to kMostPenalty; 1: off. Divides positive,
                                ///< multiplies negative logits of the last repeat_last_n tokens
                                ///< (arXiv 1909.05858, section 4.1)
  int repeat_last_n = 64;       ///< 0: off, -1: all
  uint64_t seed = 0;
};

class Sampler {
 public:
  /// Throws Error{kUsage} naming the field for values out of range.
  explicit Sampler(const SamplerConfig& config);
  ~Sampler();
  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;

  /// Picks a token and remembers it for the penalty. NaN logits never win; throws Error{kRuntime}
  /// when none is finite.
  int32_t sample(std::span<const float> logits);
  /// Adds tokens (the prompt's) to the penalty's history.
  void accept(std::span<const int32_t> tokens);

 private:
  struct Impl;
  Impl& state() const;  // throws Error{kUsage} where the sampler was moved from
  std::unique_ptr<Impl> impl_;
};

}  // namespace snapkv
