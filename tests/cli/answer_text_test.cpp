// SPDX-License-Identifier: MIT
// AnswerText: where an answer's lines break on a terminal, and how it ends.
#include "cli/common/answer_text.h"

#include <gtest/gtest.h>

namespace snapkv::cli {
namespace answer_text_tests {

/// What is written of a text that comes in pieces of `n` bytes (0: at once).
std::string shown(const std::string& text, size_t width, size_t n = 0) {
  std::string out;
  AnswerText answer(width, [&](std::string_view part) { out += part; });
  for (size_t at = 0; at < text.size();) {
    size_t end = n == 0 ? text.size() : std::min(text.size(), at + n);
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
    answer.write(text.substr(at, end - at));
    at = end;
  }
  answer.finish();
  return out;
}

void expect_shown(const std::string& text, const std::string& expected, size_t width = 20) {
  for (const size_t n : {0, 1, 3, 7}) EXPECT_EQ(shown(text, width, n), expected) << n;
}

TEST(AnswerText, EndsInOneNewline) {
  for (const char* text : {"Yes.", "Yes.\n", "Yes.\n\n\n"}) {
    expect_shown(text, "Yes.\n");
    expect_shown(text, "Yes.\n", 0);
  }
  expect_shown("\n\nYes,\n\nsir.\n", "\n\nYes,\n\nsir.\n", 0);
  expect_shown("", "\n");
}

TEST(AnswerText, BreaksBetweenWords) {
  //           12345678901234567890
  expect_shown("The quick brown fox jumps over the lazy dog.",
               "The quick brown fox\njumps over the lazy\ndog.\n");
  expect_shown("12345678901234567890 x", "12345678901234567890\nx\n");
  expect_shown("a  b\n\n  indented line that goes on", "a  b\n\n  indented line that\ngoes on\n");
  expect_shown("The quick brown fox jumps over it.", "The quick brown fox jumps over it.\n", 0);
  expect_shown("The quick brown fox", "The quick brown fox\n", 10);  // too narrow to be of use
}

TEST(AnswerText, LeavesCodeTablesAndLongWordsWhole) {
  const std::string code =
      "```py\nprint('one two three four five six')\n```\nAnd after it words that break.";
  expect_shown(
      code, "```py\nprint('one two three four five six')\n```\nAnd after it words\nthat break.\n");
  expect_shown("    indented code that is long enough", "    indented code that is long enough\n");
  expect_shown("| one | two | three | four |", "| one | two | three | four |\n");
  const std::string address = "https://example.com/a/very/long/path/to/something";
  expect_shown("See " + address + " for more.", "See\n" + address + " for more.\n");
}

TEST(AnswerText, KnowsWideCharacters) {
  expect_shown("一二三四五六七八九十一二", "一二三四五六七八九十\n一二\n");
  expect_shown("一二三四五六七八九十。一",
               "一二三四五六七八九\n十。一\n");  // no line begins with a stop
  expect_shown("café café café café café", "café café café café\ncafé\n");
  expect_shown("cafe\u0301 cafe\u0301 cafe\u0301 cafe\u0301 x",
               "cafe\u0301 cafe\u0301 cafe\u0301 cafe\u0301\nx\n");
}

}  // namespace answer_text_tests
}  // namespace snapkv::cli
