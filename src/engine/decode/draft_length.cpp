// SPDX-License-Identifier: MIT
#include "engine/decode/draft_length.h"

#include <algorithm>

namespace snapkv {
namespace {

constexpr double kMostLost = 0.015;  // of the time of all steps
constexpr int64_t kMostWaited = 48;  // then one guess is checked again

}  // namespace

int64_t DraftLength::choose(int64_t n_guessed, int64_t n_matched, int64_t n_others) {
  class_ = n_matched >= 16 ? 3 : n_matched >= 8 ? 2 : n_matched >= 4 ? 1 : 0;
  if (n_guessed == 0 || !time_.known()) return 0;  // the first step shows what one costs
  Accepted& accepted = accepted_[class_];
  const double alone = time_.at(1.0 + static_cast<double>(n_others)), slope = time_.slope();
  // the most tokens per second, those of the other sequences included
  int64_t best = 0;
  double expected = 1.0 + static_cast<double>(n_others), right = 1.0, most = expected / alone;
  for (int64_t n = 1; n <= std::min(n_guessed, accepted.most); ++n) {
    right *= accepted.share();
    expected += right;
    const double rate = expected / (alone + slope * static_cast<double>(n));
    if (rate <= most) continue;
    most = rate;
    best = n;
  }
  const bool may_lose = saved_ > -kMostLost * seconds_;
  if (best > 0 && may_lose) return best;
  if (++accepted.n_waited < kMostWaited || !may_lose) return 0;
  accepted.n_waited = 0;
  return 1;
}

void DraftLength::learn(int64_t n_tokens, double seconds, int64_t n_guessed, int64_t n_accepted) {
  time_.add(static_cast<double>(n_tokens), seconds);
  seconds_ += seconds;
  if (n_guessed == 0) return;
  constexpr double kForget = 0.9;
  Accepted& accepted = accepted_[class_];
  accepted.n = kForget * accepted.n + static_cast<double>(n_accepted);
  accepted.of = kForget * accepted.of + static_cast<double>(std::min(n_accepted + 1, n_guessed));
  if (n_accepted == n_guessed) {
    accepted.most = std::max(accepted.most, 2 * n_guessed);
  } else {
    accepted.most = std::max<int64_t>(1, n_accepted + 1);
  }
  const double without = time_.at(static_cast<double>(n_tokens - n_guessed));
  // each right guess saves its sequence's share of a step; what guesses cost is not taken from this
  // step alone, since one that was disturbed would end them for a long time
  const double step = without / static_cast<double>(n_tokens - n_guessed);
  saved_ += static_cast<double>(n_accepted) * step - static_cast<double>(n_guessed) * time_.slope();
  saved_ = std::min(saved_, 0.05 * seconds_);  // what was won long ago does not pay for losses
}

}  // namespace snapkv
