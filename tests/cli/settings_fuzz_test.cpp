// SPDX-License-Identifier: MIT
// Runs the fuzz target of the command line and the configuration file without a fuzzer, on every
// file in tests/fuzz/corpus_settings, whose seeds are valid, and on mutations of them from a fixed
// seed.
#include <gtest/gtest.h>

#include "tests/fuzz/fuzz_settings.h"
#include "tests/fuzz/replay.h"

namespace snapkv::test {
namespace settings_fuzz_tests {

TEST(SettingsFuzz, Mutations) {
  constexpr const char* kPieces[] = {"\n",
                                     "\n--",
                                     "=",
                                     "\n-",
                                     "\n[",
                                     "]\n",
                                     "\"",
                                     "'",
                                     "#",
                                     "\n0",
                                     "-1",
                                     ",",
                                     ".",
                                     "1e999",
                                     "nan",
                                     "\xff",
                                     "--kv-budget=",
                                     "\nmodel = ",
                                     "\x1b[2J",
                                     "\n9223372036854775807",
                                     "[[",
                                     "{",
                                     "\"\"\"",
                                     "\\"};
  const FuzzTarget target = [](const std::string& bytes) {
    const std::string message = read_hostile_settings(bytes);
    EXPECT_LT(message.size(), 5000u) << message;
    return message.empty();
  };
  testing::internal::CaptureStdout();  // the help texts
  const std::vector<std::string> seeds = replay_corpus("corpus_settings", target);
  ASSERT_GT(seeds.size(), 3u);
  constexpr int kTries = 1000;
  const int n_accepted = replay_mutations(seeds, kPieces, kTries, target);
  testing::internal::GetCapturedStdout();
  EXPECT_GT(n_accepted, kTries / 100);
  EXPECT_LT(n_accepted, kTries / 2);
}

}  // namespace settings_fuzz_tests
}  // namespace snapkv::test
