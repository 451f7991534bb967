// SPDX-License-Identifier: MIT
#include "engine/decode/guess_length.h"

#include <algorithm>

namespace snapkv {

void GuessLength::Share::add(bool right) {
  constexpr double kForget = 0.96;
  n = kForget * n + (right ? 1 : 0);
  of = kForget * of + 1;
}

size_t GuessLength::range_of(float probability) {
  return std::upper_bound(kBounds.begin(), kBounds.end(), probability) - kBounds.begin();
}

bool GuessLength::more(std::span<const GuessedToken> guesses, int64_t n_sessions,
                           int64_t n_guessing, const StepTime& checking) {
  if (!checking.known()) return false;             // the first step shows what one costs,
  if (!guessing_.known()) return guesses.empty();  // and the first guess too
  const double guess = guessing_.at(static_cast<double>(n_guessing)) / n_guessing;
  const double cost = guess + checking.slope();
  double right = 1, expected = 1;
  double time = checking.at(static_cast<double>(n_sessions)) / n_sessions;
  for (const GuessedToken& g : guesses) {
    right *= right_[range_of(g.probability)].value();
    expected += right;
    time += cost;
  }
  // another guess must bring more tokens per second than the step has without it
  const bool pays = right * any_.value() / cost > expected / time;
  if (!guesses.empty()) return pays;
  const bool may_lose = saved_ > -kMostLost * seconds_;
  const bool tries = may_lose && (pays || ++n_waited_ >= kMostWaited);
  if (tries) n_waited_ = 0;
  return tries;
}

void GuessLength::learn(std::span<const GuessedToken> guesses, int64_t n_right,
                            double guess_seconds, int64_t n_sessions, double seconds,
                            const StepTime& checking) {
  // of the guesses after the first wrong one nothing is known
  const int64_t n_known = std::min(n_right + 1, std::ssize(guesses));
  for (int64_t i = 0; i < n_known; ++i) {
    right_[range_of(guesses[i].probability)].add(i < n_right);
    any_.add(i < n_right);
  }
  const double alone = checking.at(static_cast<double>(n_sessions)) / n_sessions;
  saved_ += static_cast<double>(n_right) * alone - guess_seconds -
            static_cast<double>(guesses.size()) * checking.slope();
  seconds_ += seconds / static_cast<double>(n_sessions) + guess_seconds;
  saved_ = std::min(saved_, 0.05 * seconds_);  // what was won long ago does not pay for losses
}

}  // namespace snapkv
