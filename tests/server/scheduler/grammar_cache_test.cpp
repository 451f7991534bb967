// SPDX-License-Identifier: MIT
// The cache of grammars: what is shared, and what goes when there is too much.
#include "server/scheduler/grammar_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/test_models.h"

namespace snapkv::server {
namespace {

Grammar grammar_of(int i) { return Grammar::parse("root ::= \"" + std::to_string(i) + "\""); }

TEST(GrammarCache, KeepsEachGrammarOnceAndTheLatestOnes) {
  GrammarCache cache(test::load_model("needle"), size_t{64} << 20);
  for (const int i : {0, 1, 2, 0}) cache.matcher_of(grammar_of(i));
  EXPECT_EQ(cache.size(), 3);
  for (int i = 3; i < 30; ++i) cache.matcher_of(grammar_of(i));
  EXPECT_EQ(cache.size(), static_cast<int>(GrammarCache::kMostMatchers));
}

TEST(GrammarCache, EvictsMasksThatHaveGrownButNotTheLatest) {
  GrammarCache cache(test::load_model("needle"), 1);
  std::vector<GrammarMatcher> matchers;
  for (int i = 0; i < 3; ++i) matchers.push_back(cache.matcher_of(grammar_of(i)));
  EXPECT_EQ(cache.size(), 3) << "there are no masks yet";
  std::vector<uint64_t> allowed;
  for (GrammarMatcher& matcher : matchers) matcher.mask(allowed);
  cache.trim();
  EXPECT_EQ(cache.size(), 1);
}

}  // namespace
}  // namespace snapkv::server
