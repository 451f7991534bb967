// SPDX-License-Identifier: MIT
// Runs the fuzz target of the files of evaluations without a fuzzer, on every file in
// tests/fuzz/corpus_records, whose seeds make tables or scores, and on mutations of them from a
// fixed seed.
#include <gtest/gtest.h>

#include "tests/fuzz/fuzz_records.h"
#include "tests/fuzz/replay.h"

namespace snapkv::test {
namespace {

TEST(RecordsFuzz, Mutations) {
  constexpr const char* kPieces[] = {"{",
                                     "}",
                                     "[",
                                     "]",
                                     ",",
                                     ":",
                                     "\"",
                                     "\n",
                                     "null",
                                     "true",
                                     "-1",
                                     "1e308",
                                     "1e999",
                                     "[]",
                                     "0.5",
                                     "@0",
                                     "@1",
                                     "\"a\"",
                                     "\\u0000",
                                     "\xff",
                                     "18446744073709551615",
                                     "-9223372036854775808"};
  const FuzzTarget target = [](const std::string& bytes) {
    return !use_hostile_records(bytes).empty();
  };
  const std::vector<std::string> seeds = replay_corpus("corpus_records", target);
  ASSERT_GT(seeds.size(), 10u);
  constexpr int kTries = 20000;
  const int n_accepted = replay_mutations(seeds, kPieces, kTries, target);
  EXPECT_GT(n_accepted, kTries / 50);
  EXPECT_LT(n_accepted, kTries / 2);
}

}  // namespace
}  // namespace snapkv::test
