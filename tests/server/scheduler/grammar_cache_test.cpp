// SPDX-License-Identifier: MIT
// The cache of grammars: what is shared, and what goes when there is too much.
#include "server/scheduler/grammar_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "format/gguf.h"
#include "tests/support/bpe_vocab.h"
#include "tests/support/gguf_writer.h"
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

std::unique_ptr<Tokenizer> tokenizer_of(const test::BpeVocab& vocab) {
  test::GgufWriter writer;
  const auto bytes = vocab.write_to(writer).bytes();
  return Tokenizer::from_gguf(GgufFile::parse(bytes, "the-file"));
}

// Mistral's marks are control tokens, which other grammars must not have.
TEST(GrammarCache, MarksOfCallsMayBeControlTokens) {
  test::BpeVocab vocab;
  EXPECT_EQ(vocabulary_with_marks(*tokenizer_of(vocab)), nullptr);
  vocab.add_spelled("<tool_call>", test::BpeVocab::kUserDefined);
  EXPECT_EQ(vocabulary_with_marks(*tokenizer_of(vocab)), nullptr);
  const int32_t mark = vocab.add_spelled("[TOOL_CALLS]", test::BpeVocab::kControl);
  const int32_t other = vocab.add_spelled("[INST]", test::BpeVocab::kControl);
  const auto tokenizer = tokenizer_of(vocab);
  const Grammar grammar = Grammar::parse("root ::= [^x]*");
  const auto allows = [&](const std::shared_ptr<const GrammarVocabulary>& tokens, int32_t id) {
    std::vector<uint64_t> allowed;
    GrammarMatcher(grammar, tokens).mask(allowed);
    return (allowed[static_cast<size_t>(id) / 64] >> (id % 64) & 1) != 0;
  };
  const auto with_marks = vocabulary_with_marks(*tokenizer);
  ASSERT_NE(with_marks, nullptr);
  EXPECT_TRUE(allows(with_marks, mark));
  EXPECT_FALSE(allows(with_marks, other));
  EXPECT_TRUE(allows(with_marks, 'a'));
  EXPECT_FALSE(allows(std::make_shared<const GrammarVocabulary>(*tokenizer), mark));
}

}  // namespace
}  // namespace snapkv::server
