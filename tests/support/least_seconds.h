// SPDX-License-Identifier: MIT
// The processor time of repeatable work, for limits that must also hold on busy machines. Other
// work on the processor's caches or cores can only add to a measurement, so the least of several
// counts. Work that is too slow is too slow every time.
#pragma once

#include <algorithm>

#include "base/cpu_timer.h"

namespace snapkv::test {

/// Returns the least processor time in seconds of up to `n_times` runs of work(); stops as soon as
/// a run takes at most `enough`.
template <typename Work>
double least_seconds(double enough, int n_times, const Work& work) {
  double least = 1e9;
  for (int i = 0; i < n_times && least > enough; ++i) {
    const CpuTimer timer;
    work();
    least = std::min(least, timer.seconds());
  }
  return least;
}

}  // namespace snapkv::test
