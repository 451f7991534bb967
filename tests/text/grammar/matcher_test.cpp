// SPDX-License-Identifier: MIT
// GrammarMatcher: masks compared with trying every token; copies, ends, and the memory of long
// answers.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <thread>

#include "snapkv/grammar.h"
#include "tests/support/expect_error.h"
#include "tests/text/grammar/grammar_support.h"

namespace snapkv::test {
namespace {

// Pieces like those of real vocabularies: words, punctuation with quotes, parts of characters,
// duplicates.
std::shared_ptr<const GrammarVocabulary> mixed_vocabulary() {
  std::vector<std::string> pieces = {
      "",    "the", " the",  "\"",   "\",",  "\":",      "{\"",      "\"}",      "}}",
      "]",   "a\"", "x\": ", "12",   "3.5",  "true",     "tru",      "e",        "null",
      " ",   "  ",  "\n",    "\n\n", "\xe2", "\x82\xac", "\xe2\x82", "\xf0\x9f", "\\",
      "\\n", "\\u", "00e9",  "the",  "[",    "[[",       "\"\"",     "-",        ","};
  std::mt19937 random(7);
  const std::string letters = "ab\"\\{}[]:,0 \xc3\xa9";
  for (int i = 0; i < 400; ++i) {
    std::string piece;
    for (auto n = 1 + random() % 5; n > 0; --n) piece += letters[random() % letters.size()];
    pieces.push_back(piece);
  }
  pieces.emplace_back("</s>");
  const auto end = static_cast<int32_t>(pieces.size()) - 1;
  return std::make_shared<const GrammarVocabulary>(std::move(pieces), std::vector<int32_t>{end});
}

bool takes(const GrammarMatcher& matcher, int32_t id) {
  GrammarMatcher copy = matcher;
  try {
    copy.accept(id);
  } catch (const Error&) {
    return false;
  }
  return true;
}

// The mask must agree with accept() for each token alone, which walks no trie and does not know the
// matcher's internal rules. Returns the tokens that the mask allows.
std::vector<int32_t> checked_mask(const GrammarMatcher& matcher, int64_t n_vocab) {
  std::vector<uint64_t> mask;
  matcher.mask(mask);
  std::vector<int32_t> allowed;
  for (int32_t id = 0; id < n_vocab; ++id) {
    EXPECT_EQ(bit(mask, id), takes(matcher, id)) << "token " << id;
    if (bit(mask, id)) allowed.push_back(id);
  }
  return allowed;
}

// Takes random paths through a grammar and checks the mask at each step.
void compare_masks(const Grammar& grammar, int n_steps, uint32_t seed) {
  const auto vocabulary = mixed_vocabulary();
  std::mt19937 random(seed);
  GrammarMatcher matcher(grammar, vocabulary);
  for (int step = 0; step < n_steps; ++step) {
    SCOPED_TRACE(step);
    const std::vector<int32_t> allowed = checked_mask(matcher, vocabulary->n_vocab());
    if (testing::Test::HasFailure()) return;
    if (allowed.empty()) {
      EXPECT_FALSE(matcher.is_complete());
      return;
    }
    const int32_t id = allowed[random() % allowed.size()];
    matcher.accept(id);
    if (id == vocabulary->n_vocab() - 1) {
      EXPECT_FALSE(matcher.is_complete());
      EXPECT_FALSE(matcher.can_continue());
      matcher = GrammarMatcher(grammar, vocabulary);
    }
  }
}

// Texts of 1 to 30 characters: similar to each other, with characters of all lengths in UTF-8 and
// from several parts of Unicode, cut at either end, and with quotes anywhere.
std::shared_ptr<const GrammarVocabulary> vocabulary_of_runs() {
  std::vector<std::string> pieces;
  std::mt19937 random(11);
  const std::string characters[] = {"a",      "b",      "B",      "7",      " ",      "\u00e9",
                                    "\u00a0", "\u0436", "\u20ac", "\u3000", "\u4e2d", "\U0001f600"};
  for (size_t n = 1; n <= 30; ++n) {
    for (const std::string& one : characters) {
      std::string alike, mixed;
      for (size_t i = 0; i < n; ++i) {
        alike += one;
        mixed += characters[random() % std::size(characters)];
      }
      pieces.push_back(alike);
      pieces.push_back(mixed);
      pieces.push_back(mixed + "\"");
      pieces.push_back(mixed + "\",\"" + mixed.substr(0, 1));
      pieces.push_back(alike.substr(0, alike.size() - 1) + "\xe2\x82");
      pieces.push_back("\x80" + alike);
    }
    std::string pairs;
    for (size_t i = 0; i < n; ++i) pairs += i % 2 == 0 ? 'x' : '0';
    pieces.push_back(pairs);
    pieces.push_back(pairs + ".");
  }
  for (const char* one : {"\"", "\",", ".", "x", "0", "\\n", "\\u00", "e9\""})
    pieces.emplace_back(one);
  pieces.emplace_back("</s>");
  const auto end = static_cast<int32_t>(pieces.size()) - 1;
  return std::make_shared<const GrammarVocabulary>(std::move(pieces), std::vector<int32_t>{end});
}

// Reads `text` byte by byte and checks the mask at each place: near the bounds of repetitions and
// far from them, inside characters and between them.
void compare_masks_along(const Grammar& grammar, const std::string& text) {
  const auto vocabulary = vocabulary_of_runs();
  GrammarMatcher matcher(grammar, vocabulary);
  for (size_t i = 0; i <= text.size(); ++i) {
    SCOPED_TRACE(text.substr(0, i));
    (void)checked_mask(matcher, vocabulary->n_vocab());
    if (testing::Test::HasFailure()) return;
    if (i < text.size()) matcher.accept_text(text.substr(i, 1));
  }
}

std::string repeated(const std::string& text, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) all += text;
  return all;
}

TEST(GrammarMatcher, MasksAreExactAtEveryCountOfARepetition) {
  const std::string words = "\"" + repeated("ab \xc3\xa9\xe2\x82\xac", 8);
  for (const char* bounds : {"{0,40}", "{30,40}", "{0,9}", "{38,}", "{40}", "*"}) {
    SCOPED_TRACE(bounds);
    const std::string shown =
        bounds == std::string("{0,9}") ? words.substr(0, 14) + "\"" : words + "\"";
    compare_masks_along(
        Grammar::parse("root ::= string (\",\" string)*\nstring ::= \"\\\"\" [^\"]" +
                       std::string(bounds) + " \"\\\"\""),
        shown);
  }
  compare_masks_along(
      Grammar::from_json_schema(R"({"type": "string", "minLength": 20, "maxLength": 31})"),
      words.substr(0, 50) + "\"");
  compare_masks_along(Grammar::parse("root ::= .{3,30}"), repeated("a\xf0\x9f\x98\x80", 15));
  compare_masks_along(Grammar::parse("root ::= ([a-z] [0-9]){2,14} [a-z]? \".\""),
                      repeated("x0", 14) + ".");
  compare_masks_along(Grammar::parse("root ::= ([a-c]{1,9} \" \"){2,5} [\\x00-\\x7f]{0,20}"),
                      repeated("abaab ", 5) + repeated("b", 20));
  // A part of Unicode whose characters are treated differently, and parts treated as a whole.
  compare_masks_along(Grammar::parse("root ::= ([^\\u00a0\\u3000\"]{1,20} \"\\\"\")+"),
                      repeated("a\u00e9\u0436\u4e2d\u20ac\"", 3));
  compare_masks_along(
      Grammar::parse("root ::= [\\u0400-\\u04ff \\u4e00-\\u9fff]{0,26} [^\\u0436]*"),
      repeated("\u0436 \u4e2d", 8) + "ab\u4e2d");
  // Nearly every text can be read in several ways, in some of which a word continues and in others
  // ends.
  compare_masks_along(Grammar::from_json_schema(
                          R"x({"type": "string", "pattern": "^\\w*[^a-z\"\\\\].{0,4}\\S$"})x"),
                      "\"abBa7 \u0436\u4e2da\"");
  compare_masks_along(Grammar::parse("root ::= [a-zB]* [B7\\u00e9] .{0,4} [^\\u00a0 ]"),
                      "abaB\u00e9a\u3000\u4e2d7");
  // Two ways to read a text, one of which ends sooner.
  compare_masks_along(Grammar::parse("root ::= [a-z ]{0,6} \"7\" | [a-z7]{0,17} \"\\\"\""),
                      repeated("a", 17) + "\"");
}

TEST(GrammarMatcher, MasksAreWhatAcceptSays) {
  compare_masks(Grammar::json_value(), 300, 1);
  compare_masks(Grammar::json_object(), 300, 2);
  compare_masks(Grammar::from_json_schema(R"({"type": "object", "properties": {
      "the": {"type": "string", "maxLength": 5}, "a": {"type": "array", "items": {"enum": [1, "b"]}},
      "n": {"type": "number"}}, "additionalProperties": {"type": "boolean"}})"),
                300, 3);
  compare_masks(Grammar::parse("root ::= word (\" \" word)* \".\"\nword ::= [a-z\\u00e9]+"), 100,
                4);
  compare_masks(Grammar::parse(R"(root ::= [^"]* "\"" .{3,5} | ("{" root "}")+)"), 200, 5);
  compare_masks(Grammar::parse("root ::= item+\nitem ::= \"[\" item \"]\" | [0-9]{1,3} | \",\""),
                200, 6);
  // A text that often returns to earlier places.
  compare_masks(Grammar::parse(R"x(root ::= "(" root ")" | word root ("the" | ", ")? | word
                                   word ::= [a-z(]+ " "?)x"),
                60, 7);
}

TEST(GrammarMatcher, EndTokensAreAllowedExactlyWhenTheAnswerMayEnd) {
  GrammarMatcher matcher(Grammar::parse("root ::= \"ab\" \"c\"?"), byte_vocabulary());
  std::vector<uint64_t> mask;
  matcher.mask(mask);
  EXPECT_FALSE(bit(mask, kByteVocabularyEnd));
  expect_error(ErrorCode::kUsage, {"may not end here"},
               [&] { matcher.accept(kByteVocabularyEnd); });
  matcher.accept_text("ab");
  EXPECT_TRUE(matcher.is_complete());
  EXPECT_TRUE(matcher.can_continue());
  matcher.mask(mask);
  EXPECT_TRUE(bit(mask, kByteVocabularyEnd));
  EXPECT_TRUE(bit(mask, 'c'));
  EXPECT_FALSE(bit(mask, 'b'));
  matcher.accept('c');
  EXPECT_TRUE(matcher.is_complete());
  EXPECT_FALSE(matcher.can_continue());
  matcher.accept(kByteVocabularyEnd);
  EXPECT_FALSE(matcher.is_complete());
  matcher.mask(mask);
  EXPECT_EQ(mask, std::vector<uint64_t>(mask.size(), 0));
  expect_error(ErrorCode::kUsage, {"not allowed"}, [&] { matcher.accept('c'); });
}

TEST(GrammarMatcher, RefusesWhatIsNotAllowedAndStaysWhereItWas) {
  GrammarMatcher matcher(Grammar::parse("root ::= \"abc\"", "mine"), byte_vocabulary());
  matcher.accept('a');
  expect_error(ErrorCode::kUsage, {"mine", "'x'", "not allowed"}, [&] { matcher.accept('x'); });
  expect_error(ErrorCode::kUsage, {"token 257", "257"}, [&] { matcher.accept(257); });
  expect_error(ErrorCode::kUsage, {"token -1"}, [&] { matcher.accept(-1); });
  matcher.accept('b');
  const GrammarMatcher copy = matcher;
  matcher.accept('c');
  EXPECT_TRUE(matcher.is_complete());
  EXPECT_FALSE(copy.is_complete());
}

TEST(GrammarMatcher, AppliesToLogits) {
  const GrammarMatcher matcher(Grammar::parse("root ::= [bc]"), byte_vocabulary());
  std::vector<float> logits(300, 1.0f);  // more than the tokens of the vocabulary
  matcher.apply(logits);
  for (size_t id = 0; id < logits.size(); ++id) {
    if (id == 'b' || id == 'c') {
      EXPECT_EQ(logits[id], 1.0f);
    } else {
      EXPECT_EQ(logits[id], -INFINITY) << id;
    }
  }
}

// Brackets of two kinds inside each other always lead to new places: the matcher drops what it
// stored for old places from time to time, but must keep the place of the answer.
TEST(GrammarMatcher, LongAnswersKeepTheirPlace) {
  const Grammar grammar =
      Grammar::parse("root ::= item*\nitem ::= \"(\" item* \")\" | \"[\" item* \"]\" | [a-z]");
  GrammarMatcher matcher(grammar, byte_vocabulary());
  std::mt19937 random(3);
  std::vector<uint64_t> mask;
  std::string open;
  for (int i = 0; i < 100000; ++i) {
    if (open.size() < 20 || (open.size() < 40 && random() % 2 == 0)) {
      open += random() % 2 == 0 ? '(' : '[';
      matcher.accept(open.back());
    } else {
      const char right = open.back() == '(' ? ')' : ']', wrong = open.back() == '(' ? ']' : ')';
      if (i % 100 == 0) {
        matcher.mask(mask);
        ASSERT_TRUE(bit(mask, right));
        ASSERT_FALSE(bit(mask, wrong));
      }
      open.pop_back();
      matcher.accept(right);
    }
  }
}

TEST(GrammarMatcher, CopiesWorkInThreads) {
  const GrammarMatcher prototype(Grammar::json_value(), byte_vocabulary());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&prototype, t] {
      GrammarMatcher matcher = prototype;
      std::vector<uint64_t> mask;
      const std::string text = "{\"k" + std::to_string(t) + "\": [1, \"two\", {\"x\": null}]}";
      for (const char c : text) {
        matcher.mask(mask);
        EXPECT_TRUE(bit(mask, static_cast<unsigned char>(c)));
        matcher.accept(static_cast<unsigned char>(c));
      }
      EXPECT_TRUE(matcher.is_complete());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace snapkv::test
