// SPDX-License-Identifier: MIT
// Real vocabularies: ids compared with llama.cpp's reference files, and with SentencePiece on more
// text. The files are not in the repository: SNAPKV_TEST_DATA names the folder that has them
// (vocab/NAME.gguf, .gguf.inp and .gguf.out of llama.cpp's models folder).
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "format/gguf.h"
#include "snapkv/fill_in.h"
#include "snapkv/tokenizer.h"
#include "tests/support/expect_error.h"
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

// Vocabularies of code models: their tokens for filling a gap, and the prompt made of both texts.
TEST(FillIn, TokensOfRealVocabularies) {
  const char* const folder = std::getenv("SNAPKV_TEST_DATA");
  if (folder == nullptr) GTEST_SKIP() << "SKIPPED: SNAPKV_TEST_DATA is not set";
  const std::array<std::string, 4> kMarks[] = {
      {"starcoder", "<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
      {"refact", "<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
      {"deepseek-coder", "<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"}};
  for (const auto& [name, before, after, gap] : kMarks) {
    const auto tokenizer = Tokenizer::load(fmt::format("{}/vocab/{}.gguf", folder, name));
    const FillInTokens marks = fill_in_tokens(*tokenizer);
    ASSERT_TRUE(marks.complete()) << name;
    EXPECT_EQ(tokenizer->token_text(marks.before), before);
    EXPECT_EQ(tokenizer->token_text(marks.after), after);
    EXPECT_EQ(tokenizer->token_text(marks.gap), gap);
    std::vector<int32_t> expected;
    if (tokenizer->special().add_bos) expected.push_back(tokenizer->special().bos);
    const auto add = [&](int32_t mark, const std::string& text) {
      expected.push_back(mark);
      for (const int32_t id : tokenizer->encode(text, false, false)) expected.push_back(id);
    };
    add(marks.before, "int f() {\n");
    add(marks.after, gap + "}\n");  // the token's name in the text stays text
    expected.push_back(marks.gap);
    EXPECT_EQ(fill_in_prompt(*tokenizer, "int f() {\n", gap + "}\n"), expected) << name;
    EXPECT_EQ(std::count(expected.begin(), expected.end(), marks.gap), 1);
  }
  const auto without = Tokenizer::load(fmt::format("{}/vocab/gpt-2.gguf", folder));
  EXPECT_FALSE(fill_in_tokens(*without).complete());
  test::expect_error(ErrorCode::kUsage, {"no tokens to fill in"},
                     [&] { (void)fill_in_prompt(*without, "a", "b"); });
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerReferenceTest,
                         testing::Values("llama-spm", "phi-3", "deepseek-coder", "deepseek-llm",
                                         "falcon", "gpt-2", "mpt", "refact", "starcoder"));

// Without Phi-3, whose vocabulary SentencePiece rejects.
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
