// SPDX-License-Identifier: MIT
#include "long_documents/words.h"

#include <gtest/gtest.h>

namespace snapkv::long_documents {
namespace {

using Words = std::vector<std::string>;

TEST(IndexWords, AreFoldedAndStemmed) {
  EXPECT_EQ(index_words("The Histories of running, ran."),
            (Words{"the", "histori", "of", "run", "ran"}));
  EXPECT_EQ(index_words("HISTCONTROL=ignoredups:erasedups"),
            (Words{"histcontrol", "ignoredup", "erasedup"}));
  EXPECT_EQ(index_words("a_b2 48213"), (Words{"a_b2", "48213"}));
  EXPECT_EQ(index_words("Größe GRÖSSE ＡＢＣ ﬁnd"), (Words{"grösse", "grösse", "abc", "find"}));
  EXPECT_EQ(index_words("Cafe\xCC\x81"), index_words("Caf\xC3\xA9")) << "composed or not";
  EXPECT_EQ(index_words(""), Words{});
  EXPECT_EQ(index_words(" ...!\n"), Words{});
}

TEST(IndexWords, OtherScriptsHaveTheirOwnRules) {
  EXPECT_EQ(index_words("книги")[0], index_words("книга")[0]) << "one stem in Russian";
  EXPECT_EQ(index_words("東京都 x"), (Words{"東京", "京都", "x"}));
  EXPECT_EQ(index_words("本"), Words{"本"});
  EXPECT_EQ(index_words("本box"), (Words{"本", "box"}));
  EXPECT_EQ(index_words("本、本"), (Words{"本", "本"}));
}

TEST(IndexWords, BytesThatAreNoTextEndAWord) {
  EXPECT_EQ(index_words("one\xFFtwo\xC3"), (Words{"one", "two"}));
}

TEST(CommonWords, SayNothingAboutWhatIsLookedFor) {
  for (const char* word : {"What", "does", "the", "this", "Documents", "summary", "described"}) {
    EXPECT_TRUE(is_common_word(index_words(word).at(0))) << word;
  }
  for (const char* word : {"history", "rome", "48213", "alias"}) {
    EXPECT_FALSE(is_common_word(index_words(word).at(0))) << word;
  }
}

}  // namespace
}  // namespace snapkv::long_documents
