// SPDX-License-Identifier: MIT
// The processor time of repeatable work, for limits that must hold on busy machines too. Programs
// that share the processor's caches or cores can only add to a measurement, so the least of several
// counts. Work that is too slow is too slow every time.
#pragma once

#include <algorithm>

#include "base/cpu_timer.h"

namespace snapkv::test {

/// The least processor time in seconds of up to `n_times` runs of work(). Stops as soon as a run
/// takes no more than `enough`.
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
