// SPDX-License-Identifier: MIT
// A real control group with a memory limit, as for containers and services: a prompt that does not
// fit is refused, and the system never kills the process. Making a group needs root, so the test is
// skipped otherwise; tests/base/control_group_test.cpp tests the rules.
#include "base/control_group.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "snapkv/engine.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace control_group_tests {

namespace fs = std::filesystem;

constexpr int64_t kMib = 1 << 20;

/// A group below this process's group, removed at the end.
class TestGroup {
 public:
  /// Returns nullopt if this process may not make a group that counts memory.
  static std::optional<TestGroup> make() {
    std::vector<ControlGroup> around = control_groups("memory");
    std::reverse(around.begin(), around.end());  // in each hierarchy, the process's own group first
    for (const ControlGroup& group : around) {
      const fs::path folder = fs::path(group.folder) / ("snapkv-test-" + std::to_string(getpid()));
      const fs::path limit = folder / (group.version_2 ? "memory.max" : "memory.limit_in_bytes");
      std::error_code error;
      if (!fs::create_directory(folder, error)) continue;
      if (fs::exists(limit)) return TestGroup(folder, limit);
      fs::remove(folder, error);
    }
    return std::nullopt;
  }
  TestGroup(TestGroup&& other) noexcept
      : folder_(std::exchange(other.folder_, {})), limit_(std::move(other.limit_)) {}
  TestGroup& operator=(TestGroup&&) = delete;
  ~TestGroup() {
    if (folder_.empty()) return;
    std::error_code error;  // a process that just ended may still be listed
    for (int i = 0; i < 100 && !fs::remove(folder_, error) && error; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  bool set_limit(int64_t bytes) const { return write(limit_, std::to_string(bytes)); }
  /// Moves this process into the group.
  bool enter() const { return write(folder_ / "cgroup.procs", std::to_string(getpid())); }

 private:
  TestGroup(fs::path folder, fs::path limit)
      : folder_(std::move(folder)), limit_(std::move(limit)) {}
  static bool write(const fs::path& path, const std::string& text) {
    return static_cast<bool>(std::ofstream(path) << text << std::flush);
  }

  fs::path folder_, limit_;
};

enum Outcome : int { kAnswered = 0, kRefused = 4, kOther = 5 };

/// Reads a prompt whose plan is about 12 MiB, in this process.
Outcome read_prompt() {
  try {
    ModelOptions options;
    options.path = model_path("needle");
    options.n_threads = 1;  // a child does not have its parent's threads
    Session session(Model::load(options), {.kv = {.name = "full"}});
    session.prefill(generated_ids(3000, 1000, 1));
    for (int i = 0; i < 20; ++i) session.decode(7);
    return kAnswered;
  } catch (const Error& e) {
    return e.code() == ErrorCode::kDoesNotFit ? kRefused : kOther;
  }
}

TEST(ControlGroupTest, PromptsAreRefusedBeforeTheSystemKills) {
#if defined(SNAPKV_SANITIZED)
  GTEST_SKIP() << "a sanitizer's own memory would be counted";
#endif
  const auto group = TestGroup::make();
  if (!group.has_value()) GTEST_SKIP() << "this process can make no control group of memory";
  int n_answered = 0, n_refused = 0;
  for (int64_t limit = 8 * kMib; limit <= 32 * kMib; limit += kMib) {
    ASSERT_TRUE(group->set_limit(limit));
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(group->enter() ? read_prompt() : kOther);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status))
        << "killed by signal " << WTERMSIG(status) << " with " << limit / 1024 << " KiB";
    ASSERT_NE(WEXITSTATUS(status), kOther);
    (WEXITSTATUS(status) == kAnswered ? n_answered : n_refused) += 1;
  }
  EXPECT_GT(n_answered, 0);
  EXPECT_GT(n_refused, 0);
  std::fprintf(stderr, "%d limits answered, %d refused\n", n_answered, n_refused);
}

}  // namespace control_group_tests
}  // namespace snapkv::test
