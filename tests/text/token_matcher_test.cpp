// SPDX-License-Identifier: MIT
// TokenMatcher is compared with a plain search, and SpecialSplitter with llama.cpp's loops; both
// must take linear time for vocabularies made to prevent it.
#include "text/token_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/cpu_timer.h"
#include "text/special_splitter.h"

namespace snapkv {
namespace {

std::string random_text(std::mt19937& random, size_t max, int letters) {
  std::string text;
  for (auto n = 1 + random() % max; n > 0; --n) text += static_cast<char>('a' + random() % letters);
  return text;
}

TEST(TokenMatcherTest, FindsWhatAPlainSearchFinds) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::map<std::string, int32_t> tokens;
    for (auto n = random() % 12; n > 0; --n) {
      tokens.emplace(random_text(random, 6, 2), static_cast<int32_t>(tokens.size()));
    }
    std::vector<TokenMatcher::Entry> entries;
    for (const auto& [text, id] : tokens) entries.push_back({text, id});
    const TokenMatcher matcher(entries);
    const std::string text = random_text(random, 40, 2);
    auto places = matcher.find(text);
    std::reverse(places.begin(), places.end());
    size_t next = 0;
    for (size_t at = 0; at < text.size(); ++at) {
      std::vector<std::pair<size_t, int32_t>> here;  // length, id
      for (const auto& [token, id] : tokens) {
        if (text.compare(at, token.size(), token) == 0) here.emplace_back(token.size(), id);
      }
      if (here.empty()) continue;
      ASSERT_LT(next, places.size());
      ASSERT_EQ(places[next].begin, at);
      for (size_t max = 0; max <= 7; ++max) {
        std::pair<size_t, int32_t> best = {0, -1};
        for (const auto& token : here) {
          if (token.first <= max) best = std::max(best, token);
        }
        const auto found = matcher.longest(places[next].node, max);
        ASSERT_EQ(found.length, best.first);
        ASSERT_EQ(found.id, best.second);
      }
      ++next;
    }
    ASSERT_EQ(next, places.size());
  }
}

TEST(TokenMatcherTest, NothingIsFoundWithoutTokens) {
  EXPECT_TRUE(TokenMatcher().find("abc").empty());
  EXPECT_TRUE(TokenMatcher(std::vector<TokenMatcher::Entry>()).find("abc").empty());
  EXPECT_TRUE(TokenMatcher({{"x", 0}}).find("").empty());
}

Vocab vocab_of(const std::vector<std::string>& tokens) {
  Vocab vocab;
  vocab.tokens = tokens;
  vocab.types.assign(tokens.size(), TokenType::kUserDefined);
  vocab.index("test");
  return vocab;
}

/// llama.cpp's method: the longest token first, each searched for in all text that is left.
std::vector<SpecialSplitter::Fragment> plain_split(const Vocab& vocab, std::string_view text) {
  std::vector<int32_t> order(vocab.tokens.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return vocab.tokens[a].size() > vocab.tokens[b].size();
  });
  std::vector<SpecialSplitter::Fragment> fragments;
  if (!text.empty()) fragments.push_back({-1, text});
  for (const int32_t id : order) {
    const TokenStrip strip = vocab.strip_of(id);
    std::vector<SpecialSplitter::Fragment> next;
    for (const auto& fragment : fragments) {
      std::string_view rest = fragment.text;
      size_t at = 0;
      while (fragment.token < 0 && (at = rest.find(vocab.tokens[id])) != rest.npos) {
        std::string_view left = rest.substr(0, at);
        while (strip.left && left.ends_with(' ')) left.remove_suffix(1);
        if (!left.empty()) next.push_back({-1, left});
        next.push_back({id, {}});
        rest.remove_prefix(at + vocab.tokens[id].size());
        while (strip.right && rest.starts_with(' ')) rest.remove_prefix(1);
      }
      if (fragment.token >= 0 || !rest.empty()) next.push_back({fragment.token, rest});
    }
    fragments = std::move(next);
  }
  return fragments;
}

TEST(SpecialSplitterTest, CutsAsLlamaCppDoes) {
  std::mt19937 random(2);
  for (int round = 0; round < 3000; ++round) {
    std::map<std::string, bool> texts;
    for (auto n = random() % 10; n > 0; --n) texts[random_text(random, 5, 2)] = true;
    std::vector<std::string> tokens;
    for (const auto& [token, used] : texts) tokens.push_back(token);
    Vocab vocab = vocab_of(tokens);
    for (int32_t id = 0; id < vocab.size(); ++id) {
      if (random() % 3 == 0) vocab.strips[id] = {random() % 2 == 0, random() % 2 == 0};
    }
    std::string text = random_text(random, 30, 2);
    for (char& c : text) c = random() % 4 == 0 ? ' ' : c;
    const auto got = SpecialSplitter(vocab).split(text, true);
    const auto expected = plain_split(vocab, text);
    ASSERT_EQ(got.size(), expected.size()) << text;
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].token, expected[i].token) << text;
      ASSERT_EQ(got[i].text, expected[i].text) << text;
    }
  }
}

// 3,000 tokens, each a prefix of the next: in a text of that letter all of them match at each
// place.
TEST(SpecialSplitterTest, ManyNestedTokensTakeNoMoreTime) {
  std::vector<std::string> tokens;
  for (size_t n = 1; n <= 3000; ++n) tokens.push_back(std::string(n, 'a'));
  tokens.push_back(std::string(3000, 'a') + "b");
  const Vocab vocab = vocab_of(tokens);
  const SpecialSplitter splitter(vocab);
  const CpuTimer timer;
  const auto fragments = splitter.split(std::string(1'000'000, 'a'), false);
  EXPECT_LT(timer.seconds(), 30) << "a search for each token takes 3 * 10^9 steps";
  ASSERT_EQ(fragments.size(), 334u) << "333 of the longest, one of 1000";
  EXPECT_EQ(fragments.back().token, 999);
}

}  // namespace
}  // namespace snapkv
