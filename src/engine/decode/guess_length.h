// SPDX-License-Identifier: MIT
// GuessLength: for how long the kept rows (Draft::self) or a smaller model (Draft::model) should
// guess. A guess costs a step over few rows, or one of that model, and a part of the step that
// checks it, and saves a step of the model over all rows if it and all before it are right. How
// often guesses of each probability are right, and what they cost, is learned from the answer's own
// steps.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/decode/step_time.h"
#include "snapkv/engine.h"

namespace snapkv {

class GuessLength {
 public:
  /// Whether to make another guess after `guesses`. `checking`: times of steps that read all rows,
  /// in which n_sessions sequences take part. n_guessing of them guess together.
  bool more(std::span<const GuessedToken> guesses, int64_t n_sessions, int64_t n_guessing,
            const StepTime& checking);
  /// A step of guesses for n_guessing sequences took so long.
  void learn_cost(double n_guessing, double seconds) { guessing_.add(n_guessing, seconds); }
  /// A step of n_sessions sequences, which took `seconds`, has checked the guesses, for which this
  /// sequence's share of time was `guess_seconds`. The first n_right were right.
  void learn(std::span<const GuessedToken> guesses, int64_t n_right, double guess_seconds,
             int64_t n_sessions, double seconds, const StepTime& checking);

 private:
  /// A share of guesses, the last ones above all.
  struct Share {
    double n = 0, of = 0;
    double value() const { return n / of; }
    void add(bool right);
  };
  /// Guesses are alike if their probabilities are in one range: below the first of these, between
  /// two of them, or above the last.
  static constexpr std::array<float, 7> kBounds = {0.3F, 0.5F, 0.7F, 0.8F, 0.9F, 0.97F, 0.995F};
  static size_t range_of(float probability);
  static constexpr double kMostLost = 0.015;  // of all time
  static constexpr int64_t kMostWaited = 96;  // steps, then a guess is made again

  std::array<Share, kBounds.size() + 1> right_ = {{{0.4, 2},
                                                   {0.8, 2},
                                                   {1.2, 2},
                                                   {1.5, 2},
                                                   {1.7, 2},
                                                   {1.87, 2},
                                                   {1.96, 2},
                                                   {1.99, 2}}};
  Share any_ = {3.4, 4};  // of all guesses: what is expected of the next one
  StepTime guessing_;     // by the number of sequences
  int64_t n_waited_ = 0;  // steps without a guess
  double seconds_ = 0;    // of all steps and guesses
  double saved_ = 0;      // of them; below 0: lost
};

}  // namespace snapkv
