// SPDX-License-Identifier: MIT
// Real vocabularies: ids against llama.cpp's reference files, and against SentencePiece on more
// text. The files are no part of the repository: SNAPKV_TEST_DATA names the folder that has them
// (vocab/NAME.gguf, .gguf.inp and .gguf.out of llama.cpp's models folder).
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "format/gguf.h"
#include "snapkv/tokenizer.h"
#include "tests/text/sentencepiece_oracle.h"

namespace snapkv {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  size_t at = 0;
  for (size_t end = 0; (end = text.find(separator, at)) != std::string::npos;) {
    parts.push_back(text.substr(at, end - at));
    at = end + separator.size();
  }
  parts.push_back(text.substr(at));
  return parts;
}

class TokenizerReferenceTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("SNAPKV_TEST_DATA");
    if (folder == nullptr || *folder == '\0') {
      GTEST_SKIP() << "SKIPPED: SNAPKV_TEST_DATA is not set; it must name the folder that has "
                   << "vocab/" << GetParam() << ".gguf, .gguf.inp and .gguf.out";
    }
    path_ = std::string(folder) + "/vocab/" + GetParam() + ".gguf";
  }
  std::string path_;
};

TEST_P(TokenizerReferenceTest, EveryLineIsEqual) {
  const auto file = GgufFile::open(path_);
  const auto tokenizer = Tokenizer::from_gguf(file);
  // Both files end in a separator, so the last part is empty.
  auto texts = split(read_file(path_ + ".inp"), "\n__ggml_vocab_test__\n");
  auto lines = split(read_file(path_ + ".out"), "\n");
  ASSERT_EQ(texts.back(), "");
  ASSERT_EQ(lines.back(), "");
  ASSERT_EQ(texts.size(), lines.size());
  ASSERT_GT(texts.size(), 40u);
  for (size_t i = 0; i + 1 < texts.size(); ++i) {
    std::istringstream line(lines[i]);
    std::vector<int32_t> expected;
    for (int32_t id = 0; line >> id;) expected.push_back(id);
    EXPECT_EQ(tokenizer->encode(texts[i], false, true), expected) << i << ": '" << texts[i] << "'";
    EXPECT_EQ(tokenizer->decode(expected), texts[i]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerReferenceTest,
                         testing::Values("llama-spm", "phi-3", "deepseek-coder", "deepseek-llm",
                                         "falcon", "gpt-2", "mpt", "refact", "starcoder"));

// Not Phi-3: SentencePiece refuses its vocabulary.
class SentencePieceTest : public TokenizerReferenceTest {};

TEST_P(SentencePieceTest, IdsAreEqual) {
  const auto file = GgufFile::open(path_);
  const auto tokenizer = Tokenizer::from_gguf(file);
  const test::SentencePieceOracle oracle(file);
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const std::string text = test::random_text(seed, 1 + seed);
    ASSERT_EQ(tokenizer->encode(text, false, false), oracle.encode(text)) << seed << ": " << text;
    ASSERT_EQ(tokenizer->decode(tokenizer->encode(text, true, false)), text) << seed;
  }
  const std::string long_text = test::random_text(7, 60000);
  EXPECT_EQ(tokenizer->encode(long_text, false, false), oracle.encode(long_text));
}

INSTANTIATE_TEST_SUITE_P(Spm, SentencePieceTest, testing::Values("llama-spm"));

}  // namespace
}  // namespace snapkv
