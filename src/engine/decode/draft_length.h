// SPDX-License-Identifier: MIT
// DraftLength: how many guessed tokens a decode step should check. Each costs a part of a step, and
// saves one if it and all before it are right; how much and how often is learned from the steps of
// this answer. Decoding with guesses is to be faster than without or hardly slower, so what wrong
// guesses have cost may never be more than a small share of the time of all steps.
#pragma once

#include <array>
#include <cstdint>

#include "engine/decode/step_time.h"

namespace snapkv {

class DraftLength {
 public:
  /// How many of n_guessed tokens, which continue a run of n_matched tokens that stood in the text
  /// before, to check in the next step. `n_others`: tokens of other sequences in that step.
  int64_t choose(int64_t n_guessed, int64_t n_matched, int64_t n_others);
  /// The last step had n_tokens, n_guessed of them as choose() said, and n_accepted were right.
  void learn(int64_t n_tokens, double seconds, int64_t n_guessed, int64_t n_accepted);
  const StepTime& time() const { return time_; }

 private:
  /// How often guesses after runs of a certain length were right. Old ones count less.
  struct Accepted {
    double n = 0, of = 0;
    int64_t most = 0;      // to check next time: grows while all are right
    int64_t n_waited = 0;  // times that nothing was checked
    double share() const { return n / of; }
  };

  static constexpr int kClasses = 4;  // of run lengths: from 2, 4, 8, 16 tokens on
  std::array<Accepted, kClasses> accepted_ = {{{0.6, 2, 2}, {1.2, 2, 3}, {1.6, 2, 4}, {1.8, 2, 6}}};
  StepTime time_;
  int class_ = 0;       // of the last choose()
  double seconds_ = 0;  // of all steps
  double saved_ = 0;    // seconds, by all guesses; below 0: lost
};

}  // namespace snapkv
