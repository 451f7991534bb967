// SPDX-License-Identifier: MIT
// TextStream: the text does not depend on how the bytes are cut, pieces hold whole characters only,
// and stop strings are found across pieces.
#include "snapkv/text_stream.h"

#include <gtest/gtest.h>

#include <random>

#include "base/cpu_timer.h"
#include "tests/support/expect_error.h"

namespace snapkv {
namespace {

using test::expect_error;

struct Streamed {
  std::string text;
  std::string stop;
};

/// Pushes the bytes in pieces of these lengths, repeated in turn, and checks what push() promises.
Streamed stream(std::string_view bytes, const std::vector<size_t>& lengths,
                const std::vector<std::string>& stops = {}) {
  TextStream s(stops);
  Streamed result;
  for (size_t at = 0, i = 0; at < bytes.size(); ++i) {
    const size_t n = std::min(lengths[i % lengths.size()], bytes.size() - at);
    result.text += s.push(bytes.substr(at, n));
    at += n;
  }
  result.text += s.finish();
  result.stop = s.stop();
  EXPECT_EQ(s.stopped(), !s.stop().empty());
  return result;
}

TEST(TextStreamTest, CharactersAreHeldUntilTheyAreWhole) {
  TextStream s;
  EXPECT_EQ(s.push("a\xf0"), "a");
  EXPECT_EQ(s.push("\x9f\x9a"), "");
  EXPECT_EQ(s.push("\x80!"), "\xf0\x9f\x9a\x80!");
  EXPECT_EQ(s.push("\xc3"), "");
  EXPECT_EQ(s.push(""), "");
  EXPECT_EQ(s.push("\xa9"), "\xc3\xa9");
  EXPECT_EQ(s.finish(), "");
}

TEST(TextStreamTest, WhatCannotBecomeACharacterIsReplaced) {
  const std::string r = "\xef\xbf\xbd";
  const std::pair<std::string, std::string> cases[] = {
      {"\x80", r},
      {"\xff\xfe", r + r},
      {"\xc3(", r + "("},
      {"\xe2\x96(", r + "("},  // two bytes that begin a character give one replacement
      {"\xf0\x9f\x9a", r},     // the end of the text cuts the character off
      {"\xf0\x9f\x9a\xf0\x9f\x9a\x80", r + "\xf0\x9f\x9a\x80"},
      {"\xc0\x80", r + r},  // overlong: neither byte begins a character
      {"\xe0\x80\x80", r + r + r},
      {"\xed\xa0\x80", r + r + r},          // a surrogate
      {"\xf4\x90\x80\x80", r + r + r + r},  // above U+10FFFF
      {"\xf5\x80", r + r},
      {"a\xe2\x82", "a" + r},
  };
  for (const auto& [bytes, text] : cases) {
    for (const std::vector<size_t>& lengths : {std::vector<size_t>{100}, {1}, {2}, {1, 2}}) {
      EXPECT_EQ(stream(bytes, lengths).text, text) << testing::PrintToString(bytes);
    }
  }
}

TEST(TextStreamTest, StopStringsMayLieAcrossPieces) {
  TextStream s({"END", "\n\n"});
  EXPECT_EQ(s.push("one E"), "one ");
  EXPECT_EQ(s.push("N"), "");
  EXPECT_EQ(s.push("X\n"), "ENX");
  EXPECT_EQ(s.push("two\n"), "\ntwo");
  EXPECT_FALSE(s.stopped());
  EXPECT_EQ(s.push("\nthree"), "");
  EXPECT_TRUE(s.stopped());
  EXPECT_EQ(s.stop(), "\n\n");
  EXPECT_EQ(s.push("more"), "");
  EXPECT_EQ(s.finish(), "");
}

TEST(TextStreamTest, TheFirstCompleteStopStringWinsAndOfEqualOnesTheLongest) {
  EXPECT_EQ(stream("xabcd", {1}, {"abcd", "bc"}).text, "xa");
  EXPECT_EQ(stream("xabcd", {1}, {"abcd", "bc"}).stop, "bc");
  EXPECT_EQ(stream("xabc", {1}, {"bc", "abc", "c"}).text, "x");
  EXPECT_EQ(stream("xabc", {1}, {"bc", "abc", "c"}).stop, "abc");
  EXPECT_EQ(stream("aaab", {1}, {"aab"}).text, "a") << "the search goes back as far as it must";
  EXPECT_EQ(stream("ababab", {1}, {"ababc"}).text, "ababab") << "held text comes at the end";
  EXPECT_EQ(stream("x\xff", {1}, {"\xef\xbf\xbd"}).text, "x") << "replacements count as text";
}

TEST(TextStreamTest, StopStringsMustBeTexts) {
  expect_error(ErrorCode::kUsage, {"empty"}, [] { TextStream({"a", ""}); });
  expect_error(ErrorCode::kUsage, {"UTF-8"}, [] { TextStream({"\xff"}); });
}

/// The text that the header's description gives, for a text that is valid UTF-8.
Streamed expected(const std::string& text, const std::vector<std::string>& stops) {
  for (size_t end = 0; end <= text.size(); ++end) {
    std::string best;
    for (const std::string& stop : stops) {
      const bool ends =
          end >= stop.size() && text.compare(end - stop.size(), stop.size(), stop) == 0;
      if (ends && stop.size() > best.size()) best = stop;
    }
    if (!best.empty()) return {text.substr(0, end - best.size()), best};
  }
  return {text, ""};
}

TEST(TextStreamTest, AnyTextInAnyPieces) {
  std::mt19937 random(5);
  const char* const kParts[] = {"a", "b", "ab", "\xc3\xa9", "\xf0\x9f\x9a\x80", "\n"};
  const auto make = [&](size_t n) {
    std::string text;
    for (size_t i = 0; i < n; ++i) text += kParts[random() % std::size(kParts)];
    return text;
  };
  for (int i = 0; i < 5000; ++i) {
    const std::string text = make(random() % 30);
    std::vector<std::string> stops;
    for (auto n = random() % 4; n > 0; --n) stops.push_back(make(1 + random() % 4));
    const std::vector<size_t> lengths = {1 + random() % 3, 1 + random() % 5};
    const Streamed streamed = stream(text, lengths, stops);
    const Streamed whole = expected(text, stops);
    ASSERT_EQ(streamed.text, whole.text) << testing::PrintToString(stops) << " in " << text;
    ASSERT_EQ(streamed.stop, whole.stop) << testing::PrintToString(stops) << " in " << text;
  }
}

TEST(TextStreamTest, AnyBytesInAnyPieces) {
  std::mt19937 random(6);
  for (int i = 0; i < 5000; ++i) {
    std::string bytes;
    for (auto n = random() % 20; n > 0; --n) {
      constexpr unsigned char kBytes[] = {'a',  0x80, 0xbf, 0xc3, 0xe0,
                                          0xe2, 0xed, 0xf0, 0xf4, 0xff};
      bytes += static_cast<char>(random() % 4 == 0 ? random() : kBytes[random() % 10]);
    }
    const std::string whole = stream(bytes, {bytes.size() + 1}).text;
    ASSERT_EQ(stream(bytes, {1 + random() % 3, 1 + random() % 4}).text, whole);
  }
}

TEST(TextStreamTest, TimeIsLinear) {
  const std::string stop = std::string(5000, 'a') + "b";
  const CpuTimer timer;
  EXPECT_EQ(stream(std::string(2'000'000, 'a'), {3}, {stop}).text.size(), 2'000'000u);
  EXPECT_LT(timer.seconds(), 30) << "quadratic would be 10^10 steps";
}

}  // namespace
}  // namespace snapkv
