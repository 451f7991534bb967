// SPDX-License-Identifier: MIT
// The fuzz target of evaluations' files without a fuzzer: every file in tests/fuzz/corpus_records,
// whose seeds make tables or scores, and mutations of them from a fixed seed.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/fuzz_records.h"
#include "tests/fuzz/mutate.h"

namespace snapkv::test {
namespace {

std::vector<std::string> seeds() {
  std::vector<std::string> seeds;
  const std::filesystem::path folder = SNAPKV_SOURCE_DIR "/tests/fuzz/corpus_records";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    SCOPED_TRACE(entry.path());
    const std::string made = use_hostile_records(bytes);
    if (!entry.path().filename().string().starts_with("seed_")) continue;
    EXPECT_NE(made, "");
    seeds.push_back(bytes);
  }
  return seeds;
}

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
  const std::vector<std::string> inputs = seeds();
  ASSERT_GT(inputs.size(), 10u);
  std::mt19937 random(20240414);
  int n_made = 0;
  constexpr int kTries = 20000;
  for (int i = 0; i < kTries; ++i) {
    std::string text = inputs[static_cast<size_t>(i) % inputs.size()];
    for (auto n = 1 + random() % 3; n > 0; --n) mutate(text, inputs, kPieces, random);
    n_made += use_hostile_records(text).empty() ? 0 : 1;
  }
  EXPECT_GT(n_made, kTries / 50);
  EXPECT_LT(n_made, kTries / 2);
}

}  // namespace
}  // namespace snapkv::test
