// SPDX-License-Identifier: MIT
// ThreadGovernor: its decisions for given waiting times, and its purpose: two threads on a machine
// whose processors are all busy.
#include "backend/cpu/target/thread_governor.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <vector>

#include "backend/backend.h"
#include "backend/ops.h"
#include "tests/backend/op_test_util.h"

namespace snapkv::test {
namespace {

using cpu::ThreadGovernor;

constexpr int64_t kInterval = ThreadGovernor::kInterval;

TEST(ThreadGovernor, KeepsAllThreadsThatWaitLittle) {
  int64_t now = 1, waited = 0;
  ThreadGovernor governor(4, [&] { return waited; });
  for (int i = 0; i < 100; ++i, now += kInterval) {
    EXPECT_EQ(governor.threads(now), 4);
    waited += kInterval * 7 / 10;  // for all four together: below 1 - 1 / 4
  }
}

TEST(ThreadGovernor, WorksAloneLongerAndLongerWhileOthersWait) {
  int64_t now = 1, waited = 0;
  ThreadGovernor governor(2, [&] { return waited; });
  EXPECT_EQ(governor.threads(now), 2);
  std::vector<int64_t> pauses;
  for (int i = 0; i < 8; ++i) {
    waited += kInterval;  // the whole time
    now += kInterval;
    ASSERT_EQ(governor.threads(now), 1);
    const int64_t begin = now;
    while (governor.threads(now) == 1) now += kInterval;
    pauses.push_back(now - begin);
  }
  EXPECT_EQ(pauses.front(), ThreadGovernor::kFirstPause);
  EXPECT_EQ(pauses[1], 2 * pauses[0]);
  EXPECT_EQ(pauses.back(), ThreadGovernor::kLongestPause);
  now += kInterval;  // nobody waited in the last attempt
  EXPECT_EQ(governor.threads(now), 2);
  waited += kInterval;
  now += kInterval;
  EXPECT_EQ(governor.threads(now), 1);
  EXPECT_EQ(governor.threads(now + ThreadGovernor::kFirstPause), 2) << "begins anew";
}

TEST(ThreadGovernor, KeepsAllThreadsWhereTheSystemDoesNotTell) {
  int64_t now = 1;
  ThreadGovernor governor(2, [] { return int64_t{-1}; });
  for (int i = 0; i < 10; ++i, now += kInterval) EXPECT_EQ(governor.threads(now), 2);
}

/// Keeps every processor that this process may use busy.
class BusyProcessors {
 public:
  explicit BusyProcessors(const cpu_set_t& processors) {
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (!CPU_ISSET(i, &processors)) continue;
      const pid_t child = fork();
      if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(i, &one);
        sched_setaffinity(0, sizeof(one), &one);
        volatile int n = 0;
        for (;;) n = n + 1;
      }
      if (child > 0) children_.push_back(child);
    }
  }
  ~BusyProcessors() {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }
  BusyProcessors(const BusyProcessors&) = delete;
  BusyProcessors& operator=(const BusyProcessors&) = delete;

 private:
  std::vector<pid_t> children_;
};

/// Counts products of a small model's size in half a second.
int64_t count_products(Backend& backend) {
  const TestTensor x = random_tensor({1, 1024}, 1), w = random_tensor({1024, 1024}, 2, DType::q8_0);
  TestTensor out({1, 1024});
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  int64_t n = 0;
  for (; std::chrono::steady_clock::now() < end; ++n) {
    ops::project(backend, x, std::array{Projection{.w = w, .bias = {}, .out = out}});
  }
  return n;
}

// Without the governor, two spinning threads reach a tenth or less.
TEST(ThreadGovernor, TwoThreadsKeepUpWithOneOnABusyMachine) {
  cpu_set_t processors;
  ASSERT_EQ(sched_getaffinity(0, sizeof(processors), &processors), 0);
  if (CPU_COUNT(&processors) > 8) GTEST_SKIP() << "too many processors to keep busy";
  const BusyProcessors busy(processors);
  const auto one = Backend::make({.n_threads = 1}), two = Backend::make({.n_threads = 2});
  int64_t n_one = 0, n_two = 0;
  for (int turn = 0; turn < 3; ++turn) {
    n_one += count_products(*one);
    n_two += count_products(*two);
  }
  RecordProperty("two_of_one", std::to_string(static_cast<double>(n_two) / n_one));
  EXPECT_GT(n_two, n_one / 4);
}

}  // namespace
}  // namespace snapkv::test
