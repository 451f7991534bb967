// SPDX-License-Identifier: MIT
// UTF-8, categories and normalization forms, with values of the Unicode standard; normalizing long
// runs of marks takes linear time.
#include "text/unicode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>

#include "base/cpu_timer.h"
#include "base/utf8.h"

namespace snapkv {
namespace {

using unicode::Category;
using unicode::Form;

TEST(Utf8Test, LengthsOfValidAndUnfinishedCharacters) {
  EXPECT_EQ(utf8::valid_length("a"), 1u);
  EXPECT_EQ(utf8::valid_length("\xc3\xa9x"), 2u);
  EXPECT_EQ(utf8::valid_length("\xe6\x97\xa5"), 3u);
  EXPECT_EQ(utf8::valid_length("\xf0\x9f\x9a\x80"), 4u);
  EXPECT_EQ(utf8::valid_length("\xf4\x8f\xbf\xbf"), 4u);
  for (const char* bad : {"", "\x80", "\xc1\xbf", "\xc3", "\xe0\x9f\xbf", "\xed\xa0\x80",
                          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
    EXPECT_EQ(utf8::valid_length(bad), 0u) << testing::PrintToString(bad);
    EXPECT_FALSE(*bad != '\0' && utf8::is_valid(bad));
  }
  EXPECT_EQ(utf8::incomplete_length("\xf0\x9f\x9a"), 3u);
  EXPECT_EQ(utf8::incomplete_length("\xe2\x28"), 0u);
  EXPECT_EQ(utf8::incomplete_length("\xed\xa0"), 0u);
  EXPECT_EQ(utf8::incomplete_length("a"), 0u);
}

TEST(Utf8Test, EveryCodePointComesBack) {
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    std::string text;
    utf8::append(text, c);
    ASSERT_EQ(utf8::valid_length(text), text.size()) << c;
    ASSERT_EQ(utf8::code_point(text.data(), text.size()), c);
    ASSERT_EQ(utf8::length_by_lead(text[0]), text.size());
  }
}

TEST(Utf8Test, EveryByteOutsideOfCharactersIsReplaced) {
  const std::string r(utf8::kReplacement);
  EXPECT_EQ(utf8::with_replacements("a\xe2\x96z\xc3\xa9\xff"), "a" + r + r + "z\xc3\xa9" + r);
  EXPECT_EQ(utf8::ascii_prefix("0123456789abcde\xc3"), 15u);
}

TEST(UnicodeTest, Categories) {
  const std::pair<uint32_t, Category> cases[] = {
      {'a', Category::letter},    {'1', Category::number},         {'!', Category::punctuation},
      {'$', Category::symbol},    {' ', Category::separator},      {'\n', Category::other},
      {0x301, Category::mark},    {0xbd, Category::number},        {0x4e2d, Category::letter},
      {0x2160, Category::number}, {0x3001, Category::punctuation}, {0x1f680, Category::symbol},
      {0x378, Category::other},   {0x2ebf0, Category::letter},     {0x2ffc, Category::symbol},
      {0xe000, Category::other},  {0x10ffff, Category::other},     {0x110000, Category::other},
  };
  for (const auto& [c, category] : cases)
    EXPECT_EQ(unicode::category(c), category) << std::hex << c;
  EXPECT_TRUE(unicode::is_white_space(0x85));
  EXPECT_FALSE(unicode::is_white_space(0x200b));
  EXPECT_TRUE(unicode::is_word_character('_'));
  EXPECT_FALSE(unicode::is_word_character(0xb2));
  EXPECT_TRUE(unicode::is_punctuation('$'));
  EXPECT_FALSE(unicode::is_punctuation(0x20ac));
}

std::string utf8_of(const std::u32string& text) {
  std::string out;
  for (const char32_t c : text) utf8::append(out, c);
  return out;
}

TEST(UnicodeTest, NormalizationForms) {
  struct Case {
    std::u32string text, nfc, nfd, nfkc, nfkd;
  };
  const Case cases[] = {
      {U"abc", U"abc", U"abc", U"abc", U"abc"},
      {U"e\u0301", U"\u00e9", U"e\u0301", U"\u00e9", U"e\u0301"},
      {U"a\u0301\u0328", U"\u0105\u0301", U"a\u0328\u0301", U"\u0105\u0301", U"a\u0328\u0301"},
      {U"\u212b", U"\u00c5", U"A\u030a", U"\u00c5", U"A\u030a"},
      {U"\ufb01", U"\ufb01", U"\ufb01", U"fi", U"fi"},
      {U"\u1100\u1161\u11a8", U"\uac01", U"\u1100\u1161\u11a8", U"\uac01", U"\u1100\u1161\u11a8"},
      {U"\uac01", U"\uac01", U"\u1100\u1161\u11a8", U"\uac01", U"\u1100\u1161\u11a8"},
      {U"\u0344", U"\u0308\u0301", U"\u0308\u0301", U"\u0308\u0301", U"\u0308\u0301"},
      {U"\u0958", U"\u0915\u093c", U"\u0915\u093c", U"\u0915\u093c", U"\u0915\u093c"},
      {U"x\u00b2 y", U"x\u00b2 y", U"x\u00b2 y", U"x2 y", U"x2 y"},
      {U"", U"", U"", U"", U""},
  };
  for (const Case& c : cases) {
    const std::string text = utf8_of(c.text);
    EXPECT_EQ(unicode::normalized(text, Form::nfc), utf8_of(c.nfc));
    EXPECT_EQ(unicode::normalized(text, Form::nfd), utf8_of(c.nfd));
    EXPECT_EQ(unicode::normalized(text, Form::nfkc), utf8_of(c.nfkc));
    EXPECT_EQ(unicode::normalized(text, Form::nfkd), utf8_of(c.nfkd));
  }
}

// A newer utf8proc knows more characters. Ids do not depend on it.
TEST(UnicodeTest, LaterVersionsOfUnicodeChangeNothing) {
  for (const Form form : {Form::nfc, Form::nfd, Form::nfkc, Form::nfkd}) {
    // ERA NAME REIWA (12.1), OUTLINED LATIN CAPITAL LETTER K (16.0)
    for (const std::u32string& same :
         std::initializer_list<std::u32string>{U"a\u32ffb", U"\U0001ccE0", U"\u00b5x\u32ff"}) {
      std::u32string expected = same;
      if (form == Form::nfkc || form == Form::nfkd)
        std::replace(expected.begin(), expected.end(), U'\u00b5', U'\u03bc');
      EXPECT_EQ(unicode::normalized(utf8_of(same), form), utf8_of(expected));
    }
    // TODHRI LETTER EI (16.0), and its parts
    EXPECT_EQ(unicode::normalized(utf8_of(U"\U000105c9"), form), utf8_of(U"\U000105c9"));
    EXPECT_EQ(unicode::normalized(utf8_of(U"\U000105d2\u0307"), form),
              utf8_of(U"\U000105d2\u0307"));
  }
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (uint32_t c = 0; c < 0x110000; ++c) {
    hash = (hash ^ static_cast<uint64_t>(unicode::category(c))) * 0x100000001b3;
  }
  EXPECT_EQ(hash, 17443927021086541113u) << "the categories of Unicode 15.1 have changed";
}

TEST(UnicodeTest, ManyMarksTakeLinearTime) {
  std::string text = "a";
  // A mark above the letter, then one below, in turn.
  for (int i = 0; i < 500'000; ++i) text += i % 2 == 0 ? "\xcc\x81" : "\xcc\xa3";
  const CpuTimer timer;
  EXPECT_EQ(unicode::normalized(text, Form::nfd).size(), text.size());
  EXPECT_LT(timer.seconds(), 30);
}

}  // namespace
}  // namespace snapkv
