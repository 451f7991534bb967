// SPDX-License-Identifier: MIT
// The fuzz target of the server without a fuzzer: every file in tests/fuzz/corpus_server, whose
// seeds are answered, and mutations of them from a fixed seed.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/fuzz_server.h"
#include "tests/fuzz/mutate.h"

namespace snapkv::test {
namespace {

std::vector<std::string> seeds() {
  std::vector<std::string> seeds;
  const std::filesystem::path folder = SNAPKV_SOURCE_DIR "/tests/fuzz/corpus_server";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    SCOPED_TRACE(entry.path());
    const std::string answer = serve_hostile(bytes);
    if (!entry.path().filename().string().starts_with("seed_")) continue;
    EXPECT_NE(answer, "");
    seeds.push_back(bytes);
  }
  return seeds;
}

TEST(ServerFuzz, Mutations) {
  constexpr const char* kPieces[] = {"{",
                                     "}",
                                     "[",
                                     "]",
                                     ",",
                                     ":",
                                     "\"",
                                     "null",
                                     "true",
                                     "-1",
                                     "1e308",
                                     "1e999",
                                     "[]",
                                     "{}",
                                     "0.5",
                                     "\"a\"",
                                     "\\u0000",
                                     "\\ud800",
                                     "\xff",
                                     "18446744073709551615",
                                     "-9223372036854775808",
                                     "<tool_call>",
                                     "</tool_call>",
                                     "<think>",
                                     "</think>",
                                     "[TOOL_CALLS]",
                                     "<function=",
                                     "\"stream\":true,",
                                     "\"n\":8,",
                                     "\"logprobs\":true,"};
  const std::vector<std::string> inputs = seeds();
  ASSERT_GT(inputs.size(), 10u);
  std::mt19937 random(20240414);
  int n_answered = 0;
  constexpr int kTries = 20000;
  for (int i = 0; i < kTries; ++i) {
    std::string text = inputs[static_cast<size_t>(i) % inputs.size()];
    for (auto n = 1 + random() % 3; n > 0; --n) mutate(text, inputs, kPieces, random);
    n_answered += serve_hostile(text).empty() ? 0 : 1;
  }
  EXPECT_GT(n_answered, kTries / 20);
  EXPECT_LT(n_answered, kTries * 9 / 10);
}

}  // namespace
}  // namespace snapkv::test
