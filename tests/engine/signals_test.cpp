// SPDX-License-Identifier: MIT
// Signals while a prompt is read: handlers need no stack of their own. In oneDNN's products the
// stack pointer points into the heap, where a handler's frame used to overwrite the memory below.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>

#include <atomic>
#include <memory>

#include "snapkv/engine.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace signals_tests {

std::atomic<int> n_signals{0};

std::vector<float> logits_of(const std::shared_ptr<const Model>& model) {
  Session session(model, {.kv = {.budget = 128, .window_size = 16}});
  session.prefill(generated_ids(1500, 1000, 1));
  return {session.logits().begin(), session.logits().end()};
}

/// Ends the process, with 0 if signals every fifth of a millisecond changed nothing.
[[noreturn]] void read_under_signals() {
  ModelOptions options;
  options.path = model_path("needle");
  options.compute = Compute::f32;
  options.n_threads = 1;  // so that all signals reach the computing thread
  const auto model = Model::load(options);
  const std::vector<float> expected = logits_of(model);
  struct sigaction action = {};
  action.sa_handler = [](int) { ++n_signals; };
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often = {.it_interval = {0, 200}, .it_value = {0, 200}};
  setitimer(ITIMER_REAL, &often, nullptr);
  bool same = true;
  for (int i = 0; i < 4; ++i) same = same && logits_of(model) == expected;
  const itimerval never = {};
  setitimer(ITIMER_REAL, &never, nullptr);
  std::fprintf(stderr, "%d signals, results %s\n", n_signals.load(), same ? "equal" : "differ");
  std::exit(same && n_signals > 100 ? 0 : 1);
}

TEST(Signals, HandlersWriteOverNothing) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(read_under_signals(), testing::ExitedWithCode(0), "equal");
}

}  // namespace signals_tests
}  // namespace snapkv::test
