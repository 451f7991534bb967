// SPDX-License-Identifier: MIT
// The repository's own model: its ids compared with SentencePiece's, and texts that must come back
// unchanged.
#include <gtest/gtest.h>

#include "format/gguf.h"
#include "snapkv/tokenizer.h"
#include "tests/text/sentencepiece_oracle.h"

namespace snapkv {
namespace {

class NeedleTokenizerTest : public testing::Test {
 protected:
  const GgufFile file_ = GgufFile::open(std::string(SNAPKV_SOURCE_DIR) + "/models/needle.gguf");
  const std::unique_ptr<Tokenizer> tokenizer_ = Tokenizer::from_gguf(file_);
};

TEST_F(NeedleTokenizerTest, Metadata) {
  EXPECT_EQ(tokenizer_->n_vocab(), 1024);
  EXPECT_EQ(tokenizer_->special().bos, 1);
  EXPECT_EQ(tokenizer_->special().eos, 2);
  EXPECT_EQ(tokenizer_->special().unk, 0);
  EXPECT_EQ(tokenizer_->special().pad, -1);
  EXPECT_TRUE(tokenizer_->special().add_bos);
  EXPECT_TRUE(tokenizer_->is_end_of_generation(2));
  EXPECT_FALSE(tokenizer_->is_end_of_generation(3));
}

TEST_F(NeedleTokenizerTest, TextsComeBack) {
  const std::string texts[] = {
      "",
      " ",
      "  ",
      "\n",
      "\t",
      "\r\n",
      "a",
      " a",
      "a ",
      "  a  b   c    ",
      "The secret number of Paris is 48213.\n\nQuestion: What is the secret number of Paris?\n",
      "na\xc3\xafve caf\xc3\xa9, \xd0\xbd\xd0\xb5\xd1\x89\xd0\xbe, \xe6\x88\x91\xe6\x83\xb3, "
      "\xe0\xb8\xaa",
      "\xf0\x9f\x9a\x80\xf0\x9f\x98\xb6\xe2\x80\x8d\xf0\x9f\x8c\xab\xef\xb8\x8f emoji \xe2\x9c\x85",
      "tabs\tand\n\n\nlines\n \n  \n",
      "<s>control</s><unk><0x41>",
      std::string("nul\0nul", 7),
      "latin-1: caf\xe9 au lait\xff",
      "cut off \xf0\x9f\x9a",
      "\xe2\x96"};
  for (const std::string& text : texts) {
    for (const bool add_special : {false, true}) {
      const auto ids = tokenizer_->encode(text, add_special, false);
      EXPECT_EQ(tokenizer_->decode(ids), text);
      for (const int32_t id : ids) EXPECT_TRUE(id >= 0 && id < 1024);
    }
  }
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const std::string text = test::random_text(seed, 100);
    ASSERT_EQ(tokenizer_->decode(tokenizer_->encode(text, true, false)), text) << seed;
  }
}

TEST_F(NeedleTokenizerTest, PiecesJoinToTheTextAfterItsSpace) {
  std::string joined;
  for (const int32_t id : tokenizer_->encode("The secret number", true, false)) {
    joined += tokenizer_->piece(id);
  }
  EXPECT_EQ(joined, " The secret number");
}

TEST_F(NeedleTokenizerTest, IdsAreSentencePieces) {
  const test::SentencePieceOracle oracle(file_);
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const std::string text = test::random_text(seed, 1 + seed);
    ASSERT_EQ(tokenizer_->encode(text, false, false), oracle.encode(text)) << seed << ": " << text;
  }
  const std::string long_text = test::random_text(7, 60000);
  EXPECT_EQ(tokenizer_->encode(long_text, false, false), oracle.encode(long_text));
}

// The ids of SentencePiece 0.1.97, in case another version of the library is installed.
TEST_F(NeedleTokenizerTest, RecordedIds) {
  const std::string text = "The secret number of Paris is 48213.\n";
  const std::vector<int32_t> ids = {278, 286,  287,  271,  406,  291, 385, 275,
                                    956, 1004, 1003, 1000, 1006, 999, 975, 3};
  EXPECT_EQ(test::SentencePieceOracle(file_).encode(text), ids);
  EXPECT_EQ(tokenizer_->encode(text, false, false), ids);
}

}  // namespace
}  // namespace snapkv
