// SPDX-License-Identifier: MIT
// OmpThreads: sets the thread count that oneDNN works with. The library takes it from the calling
// thread's OpenMP setting, which belongs to the program that calls us, so it is changed only during
// a call into the library. Our own parallel regions give their counts explicitly.
#pragma once

#include <omp.h>

namespace snapkv::cpu {

class OmpThreads {
 public:
  explicit OmpThreads(int n) : before_(omp_get_max_threads()) { set(n); }
  ~OmpThreads() { set(before_); }
  OmpThreads(const OmpThreads&) = delete;
  OmpThreads& operator=(const OmpThreads&) = delete;

 private:
  static void set(int n) {
    if (omp_get_max_threads() != n) omp_set_num_threads(n);
  }
  const int before_;
};

}  // namespace snapkv::cpu
