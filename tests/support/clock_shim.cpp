// SPDX-License-Identifier: MIT
// A shared library for LD_PRELOAD whose wall clock jumps a day back and a year ahead between calls,
// like one that somebody sets. The monotonic clock is unaffected, as the system guarantees.
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace {

long jump() {
  static std::atomic<unsigned> n{0};
  constexpr long kJumps[] = {0, -86400, 31536000, -3600, 5};
  return kJumps[n++ % 5];
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* t) noexcept {
  const long result = syscall(SYS_clock_gettime, clock, t);
  if (result == 0 && clock == CLOCK_REALTIME) t->tv_sec += jump();
  return static_cast<int>(result);
}
int gettimeofday(timeval* t, void* /*zone*/) noexcept {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  t->tv_sec = now.tv_sec;
  t->tv_usec = now.tv_nsec / 1000;
  return 0;
}
time_t time(time_t* t) noexcept {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  if (t != nullptr) *t = now.tv_sec;
  return now.tv_sec;
}

}  // extern "C"
