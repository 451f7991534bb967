// SPDX-License-Identifier: MIT
// Runs the fuzz target of the server without a fuzzer, on every file in tests/fuzz/corpus_server,
// whose seeds get answers, and on mutations of them from a fixed seed.
#include <gtest/gtest.h>

#include "tests/fuzz/fuzz_server.h"
#include "tests/fuzz/replay.h"

namespace snapkv::test {
namespace {

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
  const FuzzTarget target = [](const std::string& bytes) { return !serve_hostile(bytes).empty(); };
  const std::vector<std::string> seeds = replay_corpus("corpus_server", target);
  ASSERT_GT(seeds.size(), 10u);
  constexpr int kTries = 20000;
  const int n_accepted = replay_mutations(seeds, kPieces, kTries, target);
  EXPECT_GT(n_accepted, kTries / 20);
  EXPECT_LT(n_accepted, kTries * 9 / 10);
}

}  // namespace
}  // namespace snapkv::test
