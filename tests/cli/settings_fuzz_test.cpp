// SPDX-License-Identifier: MIT
// The fuzz target of the command line and the configuration file without a fuzzer: every file in
// tests/fuzz/corpus_settings, whose seeds are accepted, and mutations of them from a fixed seed.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/fuzz_settings.h"
#include "tests/fuzz/mutate.h"

namespace snapkv::test {
namespace {

std::vector<std::string> seeds() {
  std::vector<std::string> seeds;
  const std::filesystem::path folder = SNAPKV_SOURCE_DIR "/tests/fuzz/corpus_settings";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    SCOPED_TRACE(entry.path());
    const std::string message = read_hostile_settings(bytes);
    if (!entry.path().filename().string().starts_with("seed_")) continue;
    EXPECT_EQ(message, "");
    seeds.push_back(bytes);
  }
  return seeds;
}

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
  const std::vector<std::string> inputs = seeds();
  ASSERT_GT(inputs.size(), 3u);
  std::mt19937 random(20240414);
  testing::internal::CaptureStdout();  // help
  int n_accepted = 0;
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    std::string text = inputs[static_cast<size_t>(i) % inputs.size()];
    for (auto n = 1 + random() % 3; n > 0; --n) mutate(text, inputs, kPieces, random);
    const std::string message = read_hostile_settings(text);
    n_accepted += message.empty() ? 1 : 0;
    EXPECT_LT(message.size(), 5000u) << message;
  }
  testing::internal::GetCapturedStdout();
  EXPECT_GT(n_accepted, kTries / 100);
  EXPECT_LT(n_accepted, kTries / 2);
}

}  // namespace
}  // namespace snapkv::test
