// SPDX-License-Identifier: MIT
// Wall-clock seconds, monotonic.
#pragma once

#include <chrono>

namespace snapkv {

class Timer {
 public:
  Timer() : start_(Clock::now()) {}
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  /// Seconds since construction or the last lap.
  double lap() {
    const auto now = Clock::now();
    const double s = std::chrono::duration<double>(now - start_).count();
    start_ = now;
    return s;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_;
};

}  // namespace snapkv
