// SPDX-License-Identifier: MIT
// Regular expressions as grammars: the texts that they allow, with the standard library's matcher
// as oracle, and the errors.
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include "tests/text/grammar/grammar_support.h"

namespace snapkv::test {
namespace {

// All texts of up to four of the characters.
std::vector<std::string> texts_of(const std::string& characters) {
  std::vector<std::string> texts = {""};
  for (size_t begin = 0, length = 0; length < 4; ++length) {
    const size_t end = texts.size();
    for (; begin < end; ++begin) {
      for (const char c : characters) texts.push_back(texts[begin] + c);
    }
  }
  return texts;
}

TEST(RegexGrammar, AllowsTheTextsThatMatchAsAWhole) {
  const std::vector<std::string> texts = texts_of("ab1.\n\" ");
  for (const char* pattern :
       {"a", "a|b", "^a|b$", "^(a|b)+$", "a?b*", "[^a]b", "\\d+(\\.\\d{1,2})?", "a{2}", "a{1,}b",
        ".*", "\\s\\w|\\W\\S", "(?:ab){0,2}", "\"[ab]*\"", "a.b", "", "a|", "[ab]*?1", "\\n+"}) {
    const Grammar grammar = Grammar::from_regex(pattern);
    const std::regex oracle(pattern, std::regex::ECMAScript);
    for (const std::string& text : texts) {
      EXPECT_EQ(allows(grammar, text), std::regex_match(text, oracle))
          << "'" << pattern << "', '" << text << "'\n"
          << grammar.source();
    }
  }
}

TEST(RegexGrammar, KnowsUnicode) {
  const Grammar grammar = Grammar::from_regex("[\\u4e00-\\u9fff]é.");
  EXPECT_TRUE(allows(grammar, "中é🙂"));
  EXPECT_FALSE(allows(grammar, "中e🙂"));
  EXPECT_TRUE(allows(Grammar::from_regex("a{3000}"), std::string(3000, 'a')));
}

TEST(RegexGrammar, NamesWhatAGrammarCannotSay) {
  const struct {
    std::string pattern, part;
  } cases[] = {{"(?=a)b", "look-ahead"},
               {"(a)\\1", "reference to a group"},
               {"\\bword", "word boundary"},
               {"(a", "expected )"},
               {"*", "nothing that * repeats"}};
  for (const auto& c : cases) {
    expect_error(ErrorCode::kUsage, {"expression: pattern '" + c.pattern + "', character ", c.part},
                 [&] { Grammar::from_regex(c.pattern, "expression"); });
  }
  expect_error(ErrorCode::kUsage, {"expression: byte 2: not UTF-8"},
               [] { Grammar::from_regex("a\xff", "expression"); });
}

}  // namespace
}  // namespace snapkv::test
