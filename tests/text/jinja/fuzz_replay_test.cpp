// SPDX-License-Identifier: MIT
// Runs the fuzz target of chat templates without a fuzzer, on every file in tests/fuzz/corpus_jinja
// (inputs that once failed, and the fuzzer's seeds) and on thousands of mutations of the templates
// in snippets.json from a fixed seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "tests/fuzz/fuzz_jinja.h"
#include "tests/fuzz/mutate.h"
#include "tests/text/jinja/render.h"

namespace snapkv::test {
namespace {

TEST(JinjaFuzz, Corpus) {
  const std::filesystem::path folder = std::string(SNAPKV_SOURCE_DIR) + "/tests/fuzz/corpus_jinja";
  int n_seeds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    const Rendering outcome = render_hostile(read_bytes(entry.path().string()));
    if (!name.starts_with("seed_")) continue;
    EXPECT_NE(outcome, Rendering::kNoTemplate);
    ++n_seeds;
  }
  EXPECT_GT(n_seeds, 3);
}

constexpr const char* kPieces[] = {"{{",       "}}",
                                   "{%",       "%}",
                                   "-",        "+",
                                   "|",        "(",
                                   ")",        "[",
                                   "]",        "'",
                                   " if ",     " else ",
                                   " in ",     " is ",
                                   "not ",     ":",
                                   ",",        "0",
                                   "-1",       "9223372036854775807",
                                   "\xc3\xa9", "\xff"};

TEST(JinjaFuzz, Mutations) {
  const Json golden = read_json("jinja/snippets.json");
  const std::string variables = golden.at("variables").dump();
  std::vector<std::string> templates;
  for (const Json& snippet : golden.at("snippets")) templates.push_back(snippet.at("template"));
  std::mt19937 random(20240414);
  int outcomes[3] = {};
  for (int i = 0; i < 10000; ++i) {
    std::string text = templates[static_cast<size_t>(i) % templates.size()];
    for (auto n = 1 + random() % 4; n > 0; --n) mutate(text, templates, kPieces, random);
    text.erase(std::remove(text.begin(), text.end(), '\0'), text.end());
    ++outcomes[static_cast<int>(render_hostile(text + '\0' + variables))];
  }
  // The mutations must reach every depth.
  EXPECT_GT(outcomes[0], 1000);
  EXPECT_GT(outcomes[1], 200);
  EXPECT_GT(outcomes[2], 1000);
}

}  // namespace
}  // namespace snapkv::test
