// SPDX-License-Identifier: MIT
// Regex: exceeding its limits is an error that names the pattern, and no search hangs. Also
// JsonPattern's translation of Oniguruma's syntax.
#include "text/regex.h"

#include <gtest/gtest.h>

#include "base/cpu_timer.h"
#include "tests/support/expect_error.h"
#include "text/json_pattern.h"
#include "text/split_rules.h"

namespace snapkv {
namespace {

using test::expect_error;
using Alphabet = Regex::Alphabet;

std::vector<std::pair<size_t, size_t>> matches(const Regex& regex, std::string_view text) {
  Regex::Scanner scanner(regex);
  scanner.set_text(text);
  std::vector<std::pair<size_t, size_t>> found;
  for (size_t from = 0; from <= text.size();) {
    const auto match = scanner.find(from);
    if (!match) break;
    found.emplace_back(match->begin, match->end);
    from = std::max(match->end, match->begin + 1);
  }
  return found;
}

TEST(RegexTest, FindsMatchesInBothAlphabets) {
  using Found = std::vector<std::pair<size_t, size_t>>;
  const Regex bytes("[\x81-\x83]+|x", Alphabet::bytes, "test");
  EXPECT_EQ(matches(bytes, "a\x82\x83x\x84"), (Found{{1, 3}, {3, 4}}));
  const Regex unicode(R"(\p{L}+)", Alphabet::unicode, "test");
  EXPECT_EQ(matches(unicode, "1\xc3\xa9t\xc3\xa9 \xe4\xb8\xad"), (Found{{1, 6}, {7, 10}}));
  EXPECT_EQ(matches(Regex("x", Alphabet::unicode, "test"), ""), Found{});
}

// A match far from the start of the search is found only after many windows.
TEST(RegexTest, LongGapsAreSearchedToTheEnd) {
  for (const Alphabet alphabet : {Alphabet::bytes, Alphabet::unicode}) {
    const Regex regex("end|\\d", alphabet, "test");
    for (const size_t n :
         {size_t{1022}, size_t{1023}, size_t{1024}, size_t{1025}, size_t{200'000}}) {
      std::string text;
      while (text.size() < n) text += alphabet == Alphabet::unicode ? "\xc3\xa9" : "\xe9";
      text += "end7";
      const auto found = matches(regex, text);
      ASSERT_EQ(found.size(), 2u) << n;
      EXPECT_EQ(found[0].first, text.size() - 4);
    }
  }
}

TEST(RegexTest, PatternsThatAreNotValidSayWhere) {
  expect_error(ErrorCode::kBadModel, {"the-file", "'a(b'", "byte 3"},
               [] { Regex("a(b", Alphabet::unicode, "the-file"); });
  expect_error(ErrorCode::kBadModel, {"the-file", "65537 bytes"},
               [] { Regex(std::string(65537, 'a'), Alphabet::unicode, "the-file"); });
  expect_error(ErrorCode::kBadModel, {"the-file", "too large"},
               [] { Regex("((a{1000}){1000}){1000}", Alphabet::unicode, "the-file"); });
}

TEST(RegexTest, ExponentialMatchesMeetTheLimit) {
  const Regex regex("(a+)+b", Alphabet::unicode, "the-file");
  const CpuTimer timer;
  expect_error(ErrorCode::kRuntime, {"the-file", "(a+)+b", "match limit"},
               [&] { matches(regex, std::string(40, 'a') + "cb"); });
  EXPECT_LT(timer.seconds(), 60);
}

// Each match, or each place without a match, costs time in proportion to the rest of the text.
// PCRE2's own limits do not notice this; the time limit does.
TEST(RegexTest, QuadraticSearchesMeetTheClock) {
  for (const char* pattern : {R"(\d{1,3}(?=(?:\d{3})*\b))", R"(\d(?=\d*x)y)"}) {
    SCOPED_TRACE(pattern);
    const CpuTimer timer;
    expect_error(ErrorCode::kRuntime, {"the-file", pattern, "takes too long"}, [&] {
      matches(Regex(pattern, Alphabet::unicode, "the-file"), std::string(400'000, '1') + "xy");
    });
    EXPECT_LT(timer.seconds(), 100);
  }
}

TEST(RegexTest, DeepMatchesGetAStackAndThenAnError) {
  const Regex regex("(?:a|b)+c", Alphabet::unicode, "the-file");
  EXPECT_EQ(matches(regex, std::string(100'000, 'a') + "c").size(), 1u)
      << "more than the machine's stack of 32 KiB";
  expect_error(ErrorCode::kRuntime, {"the-file", "(?:a|b)+c"},
               [&] { matches(regex, std::string(30'000'000, 'a') + "c"); });
}

TEST(OnPcre2Test, WritesWhatPcre2ReadsDifferently) {
  const auto translated = [](std::string_view in) { return on_pcre2(in, "test"); };
  EXPECT_EQ(translated(R"(a\d\p{L}+(?!\\S))"), R"(a\d\p{L}+(?!\\S))") << "a backslash, then S";
  EXPECT_EQ(translated(R"([^\]\d]])"), R"([^\]\d]])");
  EXPECT_EQ(translated("[]a]"), "[\\]a]");
  EXPECT_EQ(translated("[[:alpha:]x]"), "[[:alpha:]x]");
  EXPECT_EQ(translated(R"(\h)"), "[0-9A-Fa-f]");
  // Outside brackets and inside, and negated.
  const Regex space(translated(R"(\s)"), Alphabet::unicode, "test");
  const Regex in_class(translated(R"([^\s])"), Alphabet::unicode, "test");
  const Regex not_space(translated(R"(\S)"), Alphabet::unicode, "test");
  for (const char* c : {" ", "\n", "\xc2\x85", "\xe3\x80\x80"}) {
    EXPECT_EQ(matches(space, c).size(), 1u);
    EXPECT_EQ(matches(in_class, c).size(), 0u);
    EXPECT_EQ(matches(not_space, c).size(), 0u);
  }
  EXPECT_EQ(matches(space, "\xe1\xa0\x8e").size(), 0u) << "U+180E is none";
  const Regex word(translated(R"(\w)"), Alphabet::unicode, "test");
  EXPECT_EQ(matches(word, "\xcc\x81").size(), 1u) << "marks are";
  EXPECT_EQ(matches(word, "\xc2\xbd").size(), 0u) << "fractions are not";
}

TEST(OnPcre2Test, WhatItCannotWriteIsAnError) {
  for (const char* pattern : {"[a&&b]", "[a[bc]]", R"([\W])", R"([\Hx])", "[[:alpha"}) {
    expect_error(ErrorCode::kBadModel, {"the-file", pattern, "not supported"},
                 [&] { on_pcre2(pattern, "the-file"); });
  }
}

std::vector<std::string> split(const SplitRules& rules, std::string_view text) {
  std::vector<std::string> words;
  for (const uint32_t length : rules.split(text)) {
    words.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  EXPECT_TRUE(text.empty());
  return words;
}

TEST(SplitRulesTest, ClassesMeanWhatTheyMeanInLlamaCpp) {
  using Words = std::vector<std::string>;
  const SplitRule cased[] = {{SplitRule::Kind::pattern, R"([\p{Lu}]+|[\p{Ll}]+)"}};
  EXPECT_EQ(split(SplitRules(cased, "test"),
                  "ABcd\xc3\xa9"
                  "E\xce\xa3z"),
            (Words{"AB", "cd\xc3\xa9", "E\xce\xa3", "z"}))
      << "a letter that is not ASCII is both";
  const SplitRule set[] = {{SplitRule::Kind::pattern, R"([\x{4E00}-\x{4E03}x]+|\p{L}+)"}};
  EXPECT_EQ(split(SplitRules(set, "test"), "x\xe4\xb8\x80\xe4\xb8\xad\xe4\xb8\x83!"),
            (Words{"x\xe4\xb8\x80", "\xe4\xb8\xad\xe4\xb8\x83", "!"}))
      << "a character of the set is a letter too";
  const SplitRule space[] = {{SplitRule::Kind::pattern, R"(\s+)"}};
  EXPECT_EQ(split(SplitRules(space, "test"), "a\xe3\x80\x80 b"),
            (Words{"a", "\xe3\x80\x80 ", "b"}));
  EXPECT_TRUE(split(SplitRules(space, "test"), "").empty());
}

TEST(SplitRulesTest, DigitsFromTheRight) {
  using Words = std::vector<std::string>;
  const SplitRule groups[] = {{SplitRule::Kind::digit_groups}};
  EXPECT_EQ(split(SplitRules(groups, "test"), "ab1234567c12"), (Words{"ab1", "234", "567", "c12"}))
      << "what comes before joins the first group";
  EXPECT_EQ(split(SplitRules(groups, "test"), "123456"), (Words{"123", "456"}));
  const SplitRule thousands[] = {{SplitRule::Kind::thousands}};
  EXPECT_EQ(split(SplitRules(thousands, "test"), "ab1234567c12"), (Words{"ab1", "234", "567c12"}));
  EXPECT_EQ(split(SplitRules(thousands, "test"), "a123456"), (Words{"a", "123", "456"}));
}

}  // namespace
}  // namespace snapkv
