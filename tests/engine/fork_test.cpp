// SPDX-License-Identifier: MIT
// Threads do not survive a fork: a child computes the same as its parent instead of waiting for the
// other threads forever.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "snapkv/engine.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace fork_tests {

std::vector<float> logits_of(const std::shared_ptr<const Model>& model) {
  Session session(model, {.kv = {.budget = 40, .window_size = 8}});
  session.prefill(generated_ids(300, 256, 1));
  session.decode(7);
  return {session.logits().begin(), session.logits().end()};
}

/// Runs child(), which returns the exit status, in a fork of this process. Expects it to be 0.
template <typename Child>
void expect_of_fork(const Child& child) {
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    alarm(60);  // ends a child that keeps waiting
    _exit(child());
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Fork, ChildrenComputeTheSame) {
#if defined(SNAPKV_SANITIZED)
  GTEST_SKIP() << "sanitizers follow no fork of a process with threads";
#endif
  ModelOptions options;
  options.path = model_path("tiny-f32");
  options.n_threads = 2;
  const auto model = Model::load(options);
  const std::vector<float> expected = logits_of(model);
  expect_of_fork([&] { return logits_of(model) == expected ? 0 : 1; });
  EXPECT_EQ(logits_of(model), expected);  // the parent continues with two threads
}

// The copy of the weights for decoding is made by several threads too.
TEST(Fork, ChildrenLoadAndArrangeWeights) {
#if defined(SNAPKV_SANITIZED)
  GTEST_SKIP() << "sanitizers follow no fork of a process with threads";
#endif
  ModelOptions options;
  options.path = model_path("tiny-q4_0");
  options.n_threads = 2;
  options.weights = WeightMemory::huge_pages;
  const std::vector<float> expected = logits_of(Model::load(options));
  expect_of_fork([&] {
    if (logits_of(Model::load(options)) != expected) return 1;
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      alarm(60);
      _exit(logits_of(Model::load(options)) == expected ? 0 : 2);
    }
    int status = 0;
    return waitpid(grandchild, &status, 0) == grandchild && status == 0 ? 0 : 3;
  });
}

}  // namespace fork_tests
}  // namespace snapkv::test
