// SPDX-License-Identifier: MIT
// Runs the fuzz target of grammars without a fuzzer, on every file in tests/fuzz/corpus_grammar
// (inputs that once failed, and the fuzzer's seeds) and on thousands of mutations of them from a
// fixed seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "tests/fuzz/fuzz_grammar.h"

namespace snapkv::test {
namespace {

std::vector<std::string> corpus() {
  std::vector<std::string> inputs;
  const std::string folder = SNAPKV_SOURCE_DIR "/tests/fuzz/corpus_grammar";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    inputs.push_back((std::ostringstream() << in.rdbuf()).str());
  }
  std::sort(inputs.begin(), inputs.end());  // the order of files in a folder is undefined
  return inputs;
}

TEST(GrammarFuzz, Corpus) {
  int n_read = 0;
  for (const std::string& input : corpus()) {
    n_read += use_hostile_grammar(input) == GrammarUse::kText ? 1 : 0;
  }
  EXPECT_GE(n_read, 4);
}

TEST(GrammarFuzz, Mutations) {
  const std::vector<std::string> inputs = corpus();
  constexpr const char* kPieces[] = {
      "::=", "|",    "*",    "+", "{2}", "{0,9}", "(", ")", "[", "]",  "\"",   "\n", "\\x", "root",
      " ",   "\xff", "\xc3", "{", "}",   ",",     ":", "0", "9", "-1", "$ref", "#",  "."};
  std::mt19937 random(20240611);
  const auto below = [&](size_t n) { return n == 0 ? 0 : random() % n; };
  int outcomes[3] = {};
  for (int i = 0; i < 6000; ++i) {
    std::string text = inputs[static_cast<size_t>(i) % inputs.size()];
    for (auto n = 1 + random() % 3; n > 0; --n) {
      const size_t at = 1 + below(text.size());
      switch (below(3)) {
        case 0:
          text.erase(std::min(at, text.size()), below(6));
          break;
        case 1:
          text.insert(std::min(at, text.size()), kPieces[below(std::size(kPieces))]);
          break;
        default:
          text.insert(std::min(at, text.size()), text.substr(below(text.size()), below(30)));
      }
    }
    ++outcomes[static_cast<int>(use_hostile_grammar(text))];
  }
  for (const int n : outcomes) EXPECT_GT(n, 200);  // the mutations must reach every depth
}

}  // namespace
}  // namespace snapkv::test
