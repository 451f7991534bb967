// SPDX-License-Identifier: MIT
// Seconds of processor time that the calling thread has used, for limits on work that must not
// depend on the machine's other load. Reading it takes a system call.
#pragma once

#include <ctime>

namespace snapkv {

class CpuTimer {
 public:
  CpuTimer() : start_(now()) {}
  double seconds() const { return now() - start_; }

 private:
  static double now() {
    timespec time = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  double start_;
};

}  // namespace snapkv
