// SPDX-License-Identifier: MIT
// StepTime: seconds of a step by its number of tokens, a line through the last steps.
#pragma once

#include <algorithm>

namespace snapkv {

class StepTime {
 public:
  void add(double n_tokens, double seconds) {
    constexpr double kForget = 0.97;
    constexpr double kMostSlower = 3;  // what takes longer was disturbed, or is soon learned
    if (known()) seconds = std::min(seconds, kMostSlower * at(n_tokens));
    for (double* sum : {&weight_, &x_, &y_, &xx_, &xy_}) *sum *= kForget;
    weight_ += 1;
    x_ += n_tokens;
    y_ += seconds;
    xx_ += n_tokens * n_tokens;
    xy_ += n_tokens * seconds;
  }
  bool known() const { return weight_ > 0; }
  /// Of another token.
  double slope() const {
    const double mean_x = x_ / weight_, mean_y = y_ / weight_;
    const double variance = xx_ / weight_ - mean_x * mean_x;
    const double usual = kUsualSlope * mean_y / mean_x;
    if (variance < 0.05) return usual;
    // a step that was disturbed must not make tokens seem free, or dearer than steps of their own
    return std::clamp((xy_ / weight_ - mean_x * mean_y) / variance, 0.02 * mean_y, mean_y / mean_x);
  }
  double at(double n_tokens) const {
    return std::max(y_ / weight_ + slope() * (n_tokens - x_ / weight_), 0.1 * y_ / weight_);
  }

 private:
  static constexpr double kUsualSlope = 0.25;            // of a step's time, until it was measured
  double weight_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0;  // sums
};

}  // namespace snapkv
