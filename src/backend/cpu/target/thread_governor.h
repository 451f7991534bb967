// SPDX-License-Identifier: MIT
// ThreadGovernor: uses one thread instead of all while other programs keep the processors busy.
//
// The threads of an op wait for each other at its end. If another program has one thread's
// processor, the others wait until that thread's next time slice, and an op of microseconds takes
// milliseconds: with every processor busy, n threads were 10 to 25 times slower than one. Results
// do not depend on the number of threads, so it may change from op to op.
#pragma once

#include <cstdint>
#include <functional>

namespace snapkv::cpu {

/// Decides how often one calling thread's ops use all threads, from how long these waited for a
/// processor. All times are in nanoseconds.
class ThreadGovernor {
 public:
  /// Waiting times are checked this often while all threads work.
  static constexpr int64_t kInterval = 20'000'000;
  /// How long one thread works alone before all are tried again; doubled each time they have waited
  /// again.
  static constexpr int64_t kFirstPause = 4 * kInterval, kLongestPause = 64 * kInterval;

  /// `waited` returns how long the n_threads threads of a parallel region have been ready to run
  /// without a processor, in total; negative if the system does not say.
  ThreadGovernor(int n_threads, std::function<int64_t()> waited)
      : n_threads_(n_threads), waited_(std::move(waited)) {}

  /// Threads for an op that begins now: all or one.
  int threads(int64_t now);

 private:
  void begin_interval(int64_t now);

  const int n_threads_;
  const std::function<int64_t()> waited_;
  bool alone_ = false;
  int64_t until_ = 0;          // end of this interval or pause
  int64_t begin_ = 0;          // of this interval
  int64_t waited_before_ = 0;  // at its beginning
  int64_t pause_ = kFirstPause;
};

/// Makes the child of a later fork able to compute: called before the first parallel region.
/// Threads do not survive a fork, and OpenMP's runtime would wait for them.
void prepare_for_forks();

/// The number of threads that the calling thread's ops should use instead of n_threads. Always 1 in
/// a forked process whose OpenMP runtime can't start threads again.
int threads_for_op(int n_threads);

}  // namespace snapkv::cpu
