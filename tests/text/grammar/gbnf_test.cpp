// SPDX-License-Identifier: MIT
// GBNF: the texts that its constructs allow, and the errors for invalid grammars.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/support/expect_error.h"
#include "tests/text/grammar/grammar_support.h"

namespace snapkv::test {
namespace {

struct GbnfCase {
  const char* grammar;
  std::vector<std::string> whole;      // complete texts that the grammar allows
  std::vector<std::string> beginning;  // incomplete beginnings of allowed texts
  std::vector<std::string> no;
};

class Gbnf : public testing::TestWithParam<GbnfCase> {};

TEST_P(Gbnf, Allows) {
  const Grammar grammar = Grammar::parse(GetParam().grammar);
  for (const std::string& text : GetParam().whole) {
    EXPECT_EQ(verdict(grammar, text), Verdict::kWhole) << "'" << text << "'";
  }
  for (const std::string& text : GetParam().beginning) {
    EXPECT_EQ(verdict(grammar, text), Verdict::kBeginning) << "'" << text << "'";
  }
  for (const std::string& text : GetParam().no) {
    EXPECT_EQ(verdict(grammar, text), Verdict::kNo) << "'" << text << "'";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Constructs, Gbnf,
    testing::Values(
        GbnfCase{R"(root ::= "yes" | "no")", {"yes", "no"}, {"", "y", "n"}, {"x", "yess", "yesno"}},
        GbnfCase{R"(root ::= "a"*)", {"", "a", "aaaa"}, {}, {"b", "ab"}},
        GbnfCase{R"(root ::= "a"+ "b"?)", {"a", "aab", "ab"}, {""}, {"b", "abb"}},
        GbnfCase{R"(root ::= "ab"{2,3})", {"abab", "ababab"}, {"ab", "aba"}, {"abababab", "ba"}},
        GbnfCase{R"(root ::= [0-9]{2})", {"42"}, {"4"}, {"423", "x"}},
        GbnfCase{R"(root ::= [0-9]{2,} ";")", {"42;", "12345;"}, {"4", "42"}, {"4;"}},
        GbnfCase{R"(root ::= "a"{0} "b")", {"b"}, {""}, {"a", "ab"}},
        GbnfCase{R"(root ::= ("a" | "b" "c")* "d")", {"d", "abcd", "bcaad"}, {"b"}, {"c", "bd"}},
        GbnfCase{R"(root ::= ("a"*)*)", {"", "aaa"}, {}, {"b"}},  // repeats the empty text
        GbnfCase{R"(root ::= ("a"? "b"?){3})", {"", "ab", "ababab", "ba"}, {}, {"abababa", "aaaa"}},
        GbnfCase{
            R"(root ::= [^a-c"\]]+)", {"xyz", "-", "\n", "\xc3\xa9"}, {""}, {"a", "b", "]", "\""}},
        GbnfCase{R"(root ::= [a\-z]+)", {"a-z"}, {}, {"b"}},
        GbnfCase{R"(root ::= [az-]+)", {"-az"}, {}, {"b"}},
        GbnfCase{R"(root ::= .)",
                 {"a", "\n", "\xe2\x82\xac", "\xf0\x9f\x98\x80"},
                 {"\xe2\x82", ""},
                 {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "ab"}},
        GbnfCase{R"(root ::= "\x41\u00e9\U0001F600\n\t\"\\")",
                 {"A\xc3\xa9\xf0\x9f\x98\x80\n\t\"\\"},
                 {"A\xc3"},
                 {"B"}},
        // Characters of two, three and four bytes in one class: each bound and its neighbours.
        GbnfCase{"root ::= [\\u00e0-\\u1000\\uFF00-\\U00010010]",
                 {"\xc3\xa0", "\xdf\xbf", "\xe0\xa0\x80", "\xe1\x80\x80", "\xef\xbc\x80",
                  "\xf0\x90\x80\x90"},
                 {"\xc3", "\xf0\x90\x80"},
                 {"\xc3\x9f", "\xe1\x80\x81", "\xef\xbb\xbf", "\xf0\x90\x80\x91"}},
        GbnfCase{"root ::= a b # of both\na ::= \"1\"\n\n# the other\nb ::= \"2\" |\n  \"3\"\n",
                 {"12", "13"},
                 {"1"},
                 {"2"}},
        GbnfCase{"root ::= (\n  \"a\"\n  \"b\" # with a comment\n)\r\n", {"ab"}, {"a"}, {"b"}},
        GbnfCase{"root ::= | \"a\"", {"", "a"}, {}, {"aa"}},
        GbnfCase{R"(root ::= "" "a" "")", {"a"}, {""}, {"b"}},
        // Recursion in the middle and at the end.
        GbnfCase{
            R"g(root ::= "(" root ")" | "x")g", {"x", "(x)", "((x))"}, {"((x)"}, {")", "(x))"}},
        GbnfCase{"root ::= item root | item\nitem ::= [a-z] \";\"", {"a;", "a;b;c;"}, {"a"}, {";"}},
        // Several ways to read the same beginning.
        GbnfCase{R"(root ::= "a" "b" "c" | [a-z] "b" "d" | "ab"* "!")",
                 {"abc", "abd", "xbd", "abab!", "!"},
                 {"ab", "abab"},
                 {"abe", "xbc"}}));

TEST(GbnfLimits, DeepRecursionIsBoundedAndEndsAgain) {
  const Grammar grammar = Grammar::parse(R"g(root ::= "(" root ")" | "x")g");
  EXPECT_EQ(verdict(grammar, std::string(9000, '(') + "x" + std::string(9000, ')')),
            Verdict::kWhole);
  EXPECT_EQ(verdict(grammar, std::string(11000, '(')), Verdict::kNo);
  // At the end of a rule nothing needs to be remembered, so this recursion has no limit.
  EXPECT_TRUE(allows(Grammar::parse(R"(root ::= "x" root | "")"), std::string(50000, 'x')));
}

struct BadCase {
  std::string grammar;
  std::vector<std::string> words;
};

TEST(GbnfErrors, NamePlaceAndWhatWasExpected) {
  const std::vector<BadCase> cases = {
      {"", {"no rule with the name root"}},
      {"a ::= \"x\"", {"no rule with the name root"}},
      {"root := \"x\"", {"line 1, column 6", "expected ::="}},
      {"root ::= \"x", {"line 1, column 10", "no \" at its end"}},
      {"root ::= \"a\"\n\nb ::= [x", {"line 3, column 7", "no ] at their end"}},
      {"root ::= []", {"column 10", "no character"}},
      {"root ::= [z-a]", {"column 11", "last is before its first"}},
      {"root ::= \"\\q\"", {"column 12", "'q'", "after \\"}},
      {"root ::= \"\\x4\"", {"2 hexadecimal digits"}},
      {"root ::= \"\\uD800\"", {"U+D800 is not a character"}},
      {"root ::= \"\\U00110000\"", {"U+110000 is not a character"}},
      {"root ::= (\"a\"", {"expected )", "the end"}},
      {"root ::= \"a\")", {"line 1, column 13", "')'"}},
      {"root ::= * \"a\"", {"column 10", "before it"}},
      {"root ::= \"a\"{2001}", {"column 14", "more than 2000 repetitions"}},
      {"root ::= \"a\"{3,2}", {"{3,2}"}},
      {"root ::= \"a\"{", {"a number of repetitions"}},
      {"root ::= \"a\"{2;}", {"expected }"}},
      {"root ::= missing", {"column 10", "no rule with the name missing"}},
      {"root ::= \"a\"\nroot ::= \"b\"", {"line 2, column 1", "root is defined twice"}},
      {"root ::= <think> \"a\"", {"column 10", "tokens of the vocabulary"}},
      {"root ::= !<[12]>", {"column 10", "tokens of the vocabulary"}},
      {"root ::= \"\xff\"", {"column 11", "UTF-8"}},
      {"root ::= root \"a\"", {"left recursion", "root"}},
      {"root ::= a\na ::= b\nb ::= \"\" a \"x\"", {"left recursion", "the rule a"}},
      {"root ::= empty root | \"x\"\nempty ::= \"e\"?", {"left recursion", "root"}},
      {"root ::= (\"x\" | root)*", {"left recursion", "root"}},
      {std::string("root ::= ") + std::string(101, '(') + "\"a\"" + std::string(101, ')'),
       {"more than 100 parentheses"}},
      {"root ::= \"a\"" + std::string(101, '*'), {"more than 100 repetitions of one item"}},
      {"root ::= ((\"a\"{2000}){2000}){2000}", {"too large, in rule root"}},
      {"root ::= (((\"\"{2000}){2000}){2000}){2000}", {"too large, in rule root"}},
  };
  for (const BadCase& bad : cases) {
    SCOPED_TRACE(bad.grammar.substr(0, 100));
    try {
      Grammar::parse(bad.grammar, "g.gbnf");
      ADD_FAILURE() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kUsage);
      EXPECT_EQ(std::string(e.what()).rfind("g.gbnf: ", 0), 0u) << e.what();
      for (const std::string& word : bad.words) {
        EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << word << ": " << e.what();
      }
    }
  }
}

// A grammar that would take exponential time or memory gives an error soon.
TEST(GbnfLimits, HostileGrammarsEndSoon) {
  const auto start = std::chrono::steady_clock::now();
  std::string doubling = "root ::= a0\n";
  for (int i = 0; i < 40; ++i) {
    doubling += fmt::format("a{} ::= a{} \"x\" | a{} \"y\"\n", i, i + 1, i + 1);
  }
  doubling += "a40 ::= \"z\"\n";
  expect_error(ErrorCode::kRuntime, {"too ambiguous"},
               [&] { GrammarMatcher(Grammar::parse(doubling), byte_vocabulary()); });

  std::string ambiguous = "root ::= (a | a a | \"x\" a)*\na ::= b b? b?\nb ::= \"x\"? \"x\" | c\n";
  ambiguous += "c ::= \"(\" root \")\" | \"x\" c \"x\"";
  GrammarMatcher matcher(Grammar::parse(ambiguous), byte_vocabulary());
  try {
    std::vector<uint64_t> mask;
    for (int i = 0; i < 5000; ++i) {
      matcher.accept_text("x");
      matcher.mask(mask);
    }
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kRuntime) << e.what();
  }
  std::string alternatives = "\"\"";
  for (int i = 0; i < 10000; ++i) alternatives += " | \"a\"";  // these need no states of their own
  expect_error(ErrorCode::kUsage, {"too large", "parts"},
               [&] { Grammar::parse("root ::= (" + alternatives + "){0,1000}{0,20}"); });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took.count(), 20.0);
}

}  // namespace
}  // namespace snapkv::test
