// SPDX-License-Identifier: MIT
// The second signal ends the process at once and leaves no half-written file. interrupt_test tests
// the first one.
#include "cli/common/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>

#include "base/atomic_file.h"

namespace snapkv::cli {
namespace signals_tests {

TEST(Signals, TheSecondOneRemovesWhatIsBeingWritten) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string folder = testing::TempDir() + "signals";
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
    const pid_t child = fork();
    if (child == 0) {
      signal(number, SIG_DFL);
      install_signal_handlers();
      const AtomicFile file(folder + "/saved.cache", /*overwrite=*/true);
      raise(number);
      if (!interrupted()) _exit(1);
      raise(number);
      _exit(2);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
    EXPECT_EQ(WTERMSIG(status), number);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 0);
    std::filesystem::remove_all(folder);
  }
}

}  // namespace signals_tests
}  // namespace snapkv::cli
