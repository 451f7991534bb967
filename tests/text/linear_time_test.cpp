// SPDX-License-Identifier: MIT
// Encoding takes time in proportion to the text, for every vocabulary and text: texts of one length
// are compared with texts eight times as long. (EveryPreTokenizerTakesLinearTime in
// tokenizer_bpe_test.cpp covers all split patterns.)
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "format/gguf.h"
#include "tests/support/bpe_vocab.h"
#include "tests/support/least_seconds.h"
#include "text/tokenizer_json.h"

namespace snapkv {
namespace {

using Json = nlohmann::json;

constexpr double kClock = 1e-3;  // seconds that the clock and the system may add

/// The shortest of several measurements; they stop once one took at most `enough` seconds.
double seconds_to_encode(const Tokenizer& tokenizer, const std::string& text, double enough,
                         int n_times) {
  return test::least_seconds(enough, n_times, [&] {
    EXPECT_LE(tokenizer.encode(text, false, false).size(), 3 * text.size());
  });
}

struct Text {
  const char* name;
  std::string text;
};

/// Texts of about n bytes that are the hardest for merging and searching.
std::vector<Text> texts(size_t n) {
  std::mt19937 random(3);
  std::string line, letters;
  while (line.size() < n) {
    constexpr const char* kWords[] = {"the", "quick", "brown", "Fox", "jumps", "over", "lazy"};
    line += kWords[random() % std::size(kWords)];
    for (int i = 0; i < 5; ++i) letters += static_cast<char>('a' + random() % 26);
  }
  std::string english;
  while (english.size() < n) {
    english += "It was the best of times, it was the worst of times; don't you think? ";
  }
  return {{"words without spaces", line},      {"random letters", letters},
          {"one letter", std::string(n, 'a')}, {"digits", std::string(n, '1')},
          {"spaces", std::string(n, ' ')},     {"English", english}};
}

/// Eight times the text takes eight times as long in a linear algorithm, 64 times in a quadratic
/// one. The limit of 24 leaves room for tables that grow out of the processor's caches.
void expect_linear(const Tokenizer& tokenizer, size_t n_bytes) {
  const std::vector<Text> shorter = texts(n_bytes), longer = texts(8 * n_bytes);
  for (size_t i = 0; i < shorter.size(); ++i) {
    SCOPED_TRACE(shorter[i].name);
    const double once = seconds_to_encode(tokenizer, shorter[i].text, 0, 3);
    const double limit = 24 * once + kClock;
    EXPECT_LE(seconds_to_encode(tokenizer, longer[i].text, limit, 10), limit)
        << "seconds; an eighth of the text took " << once;
  }
}

TEST(LinearTimeTest, EveryComponentOfTokenizerJson) {
  std::ifstream in(std::string(SNAPKV_SOURCE_DIR) + "/tests/text/golden/huggingface.json");
  const Json golden = Json::parse(in);
  for (const Json& c : golden.at("cases")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    const auto file = parse_tokenizer_file(c.at("tokenizer").dump(), "the-file");
    expect_linear(*JsonTokenizer::make(file, {}), 50'000);
  }
}

TEST(LinearTimeTest, SentencePiece) {
  const GgufFile file = GgufFile::open(std::string(SNAPKV_SOURCE_DIR) + "/models/needle.gguf");
  expect_linear(*Tokenizer::from_gguf(file), 500'000);
}

TEST(LinearTimeTest, ByteLevelBpe) {
  test::BpeVocab v;
  // Merges that repeat: a text of one letter is joined again and again.
  for (std::string run = "a"; run.size() < 256; run += run) v.merge(run, run);
  v.merge("t", "h");
  v.merge("th", "e");
  v.merge("o", "w");
  v.merge(" ", "t");
  v.merge("1", "1");
  v.merge(" ", " ");
  test::GgufWriter writer;
  const auto bytes = v.write_to(writer, "gpt-2").bytes();
  expect_linear(*Tokenizer::from_gguf(GgufFile::parse(bytes, "the-file")), 500'000);
}

}  // namespace
}  // namespace snapkv
