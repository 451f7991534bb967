// SPDX-License-Identifier: MIT
#include "backend/cpu/target/thread_governor.h"

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/per_thread.h"

namespace snapkv::cpu {
namespace {

int64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

/// How long this thread has waited for a processor in total; negative if Linux does not count it.
int64_t waited_of_thread() {
  std::FILE* file = std::fopen("/proc/thread-self/schedstat", "re");
  if (file == nullptr) return -1;
  long long ran = 0, waited = 0;
  const bool read = std::fscanf(file, "%lld %lld", &ran, &waited) == 2;
  std::fclose(file);
  return read ? waited : -1;
}

int64_t waited_of_team(int n_threads) {
  std::atomic<int64_t> sum = 0;
  std::atomic<bool> known = true;
#pragma omp parallel num_threads(n_threads)
  {
    const int64_t waited = waited_of_thread();
    if (waited < 0) known = false;
    sum += waited;
  }
  return known ? sum.load() : -1;
}

std::atomic<bool> team_is_lost{false};      // by a fork, in the child
std::atomic<bool> team_is_released{false};  // for the fork that is about to happen

/// Ends the threads that OpenMP keeps for the thread that forks, so that its child, to whom they
/// would seem to be there still, begins with threads of its own. They start again when needed.
void release_team() {
  bool released = false;
#ifndef __clang__  // LLVM's runtime would end the teams of other threads too
  released = !team_is_lost && omp_pause_resource_all(omp_pause_hard) == 0;
#endif
  team_is_released = released;
}

/// Whether this process was forked from one that had a team of threads which could not be
/// released. In the child, OpenMP's runtime believes that the team still exists, and a parallel
/// region would wait for it forever.
bool lost_team() {
  prepare_for_forks();
  if (!team_is_lost.load(std::memory_order_relaxed)) return false;
  static std::once_flag warned;
  std::call_once(warned, [] {
    log_warn("this process was forked from one that computed with several threads: it uses one");
  });
  return true;
}

}  // namespace

void prepare_for_forks() {
  static const int registered = pthread_atfork(release_team, nullptr, [] {
    if (!team_is_released) team_is_lost = true;
  });
  if (registered != 0) {
    fail(ErrorCode::kDoesNotFit, "no memory for what has to be done when the process forks");
  }
}

void ThreadGovernor::begin_interval(int64_t now) {
  begin_ = now;
  until_ = now + kInterval;
  waited_before_ = waited_();
}

int ThreadGovernor::threads(int64_t now) {
  if (until_ == 0) begin_interval(now);
  if (now < until_) return alone_ ? 1 : n_threads_;
  if (alone_) {
    alone_ = false;
    begin_interval(now);
    return n_threads_;
  }
  // The threads, which wait for each other, advance while none of them waits for a processor, at
  // best n times as fast as a single thread that never waits. So they are slower than it if they
  // wait for more than 1 - 1 / n of the time.
  const int64_t elapsed = now - begin_, waited = waited_() - waited_before_;
  if (waited_before_ < 0 || waited <= elapsed - elapsed / n_threads_) {
    pause_ = kFirstPause;
    begin_interval(now);
    return n_threads_;
  }
  alone_ = true;
  until_ = now + pause_;
  pause_ = std::min(2 * pause_, kLongestPause);
  return 1;
}

int threads_for_op(int n_threads) {
  if (n_threads == 1 || lost_team()) return 1;
  struct Governed {
    std::optional<ThreadGovernor> governor;
    int n_threads = 0;
  };
  static auto& of_threads = *new PerThread<Governed>;
  Governed& own = of_threads.get();
  if (own.n_threads != n_threads) {
    own.governor.emplace(n_threads, [n_threads] { return waited_of_team(n_threads); });
    own.n_threads = n_threads;
  }
  return own.governor->threads(now_ns());
}

}  // namespace snapkv::cpu
