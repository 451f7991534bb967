// SPDX-License-Identifier: MIT
// TimeLimit: the time that one input of a fuzz target may take.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace snapkv::test {

/// Ends the program if more than kMostSeconds of processor time pass during its life. Unlike the
/// clock of libFuzzer's -timeout, this does not count the work of other programs on the machine.
class TimeLimit {
 public:
  static constexpr double kMostSeconds = 5;

  TimeLimit() = default;
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;
  ~TimeLimit() {
    const double seconds = static_cast<double>(std::clock() - begin_) / CLOCKS_PER_SEC;
    if (seconds <= kMostSeconds) return;
    std::fprintf(stderr, "the input took %.1f s of processor time, and may take %.0f s\n", seconds,
                 kMostSeconds);
    std::abort();
  }

 private:
  std::clock_t begin_ = std::clock();
};

}  // namespace snapkv::test
