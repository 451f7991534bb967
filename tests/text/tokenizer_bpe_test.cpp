// SPDX-License-Identifier: MIT
// The rules of BpeTokenizer, each on a vocabulary made for it. (tokenizer_reference_test.cpp and
// tools/compare_tokenizers.py compare the ids of real vocabularies.)
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "base/cpu_timer.h"
#include "format/gguf.h"
#include "snapkv/log.h"
#include "snapkv/tokenizer.h"
#include "tests/support/bpe_vocab.h"
#include "tests/support/expect_error.h"
#include "text/byte_alphabet.h"
#include "text/pre_tokenizers.h"

namespace snapkv {
namespace {

using test::BpeVocab;
using test::expect_error;
using test::GgufWriter;
using Ids = std::vector<int32_t>;

std::unique_ptr<Tokenizer> make(const BpeVocab& vocab, std::string_view pre = "gpt-2",
                                GgufWriter writer = GgufWriter()) {
  const auto bytes = vocab.write_to(writer, pre).bytes();
  return Tokenizer::from_gguf(GgufFile::parse(bytes, "the-file"));
}

/// Captures the warnings that the library logs while the object lives.
class LogCapture {
 public:
  LogCapture() {
    set_log_sink([this](LogLevel level, std::string_view text) {
      if (level == LogLevel::kWarn) warnings.emplace_back(text);
    });
  }
  ~LogCapture() { set_log_sink(nullptr); }
  std::vector<std::string> warnings;
};

TEST(BpeTest, TheFirstMergeOfTheListComesFirstThenTheLeftmost) {
  BpeVocab v;
  const int32_t bc = v.merge("b", "c"), ab = v.merge("a", "b"), aa = v.merge("a", "a");
  const auto t = make(v);
  EXPECT_EQ(t->encode("abc", false, false), (Ids{'a', bc}));
  EXPECT_EQ(t->encode("abd", false, false), (Ids{ab, 'd'}));
  EXPECT_EQ(t->encode("aaa", false, false), (Ids{aa, 'a'}));
  EXPECT_EQ(t->encode("a b", false, false), (Ids{'a', ' ', 'b'}));
  EXPECT_EQ(t->decode(Ids{'a', bc, ' ', ab}), "abc ab");
}

TEST(BpeTest, MergesMayGoThroughTextsThatAreNoTokens) {
  BpeVocab v;
  v.merges = {"a b", "ab c"};  // "ab" is not a token
  const int32_t abc = v.add("abc");
  const auto t = make(v);
  EXPECT_EQ(t->encode("abc", false, false), (Ids{abc}));
  EXPECT_EQ(t->encode("abd", false, false), (Ids{'a', 'b', 'd'})) << "spelled in bytes";
}

TEST(BpeTest, IgnoreMergesTakesWholeWords) {
  BpeVocab v;
  const int32_t ab = v.merge("a", "b"), bcd = v.add(" bcd");
  EXPECT_EQ(make(v, "llama-bpe", GgufWriter().add("tokenizer.ggml.add_bos_token", false))
                ->encode("ab bcd", false, false),
            (Ids{ab, bcd}));
  EXPECT_EQ(make(v, "gpt-2")->encode("ab bcd", false, false), (Ids{ab, ' ', 'b', 'c', 'd'}));
}

TEST(BpeTest, TextNeverBecomesAControlToken) {
  BpeVocab v;
  v.merges = {"e n", "en d"};
  v.add("en");
  const int32_t end = v.add("end", BpeVocab::kControl);
  const int32_t user = v.add_spelled("us er", BpeVocab::kUserDefined);
  for (const char* pre : {"gpt-2", "llama-bpe"}) {
    const auto t = make(v, pre, GgufWriter().add("tokenizer.ggml.add_bos_token", false));
    const Ids plain = t->encode("end", false, false);
    EXPECT_EQ(std::count(plain.begin(), plain.end(), end), 0) << pre;
    EXPECT_EQ(t->decode(plain), "end");
    EXPECT_EQ(t->encode("xendx", false, true), (Ids{'x', end, 'x'}));
    for (const bool parse_special : {false, true}) {
      EXPECT_EQ(t->encode("us er", false, parse_special), (Ids{user}));
    }
    EXPECT_EQ(t->piece(user), "us er") << "as it is written, not bytes";
    EXPECT_EQ(t->piece(end), "");
    EXPECT_EQ(t->piece(end, true), "end");
    EXPECT_TRUE(t->is_control(end));
    EXPECT_FALSE(t->is_control(user));
  }
}

TEST(BpeTest, BosAndEosByMetadataAndByPreTokenizer) {
  BpeVocab v;
  const int32_t bos = v.add("<s>", BpeVocab::kControl), eos = v.add("</s>", BpeVocab::kControl);
  const auto with = [&](std::string_view pre, GgufWriter w = GgufWriter()) {
    w.add("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(bos));
    w.add("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(eos));
    return make(v, pre, std::move(w));
  };
  EXPECT_EQ(with("gpt-2")->encode("a", true, false), (Ids{'a'}));
  EXPECT_EQ(with("llama-bpe")->encode("a", true, false), (Ids{bos, 'a'}));
  EXPECT_EQ(with("tekken")->encode("a", false, false), (Ids{'a'}));
  GgufWriter both;
  both.add("tokenizer.ggml.add_bos_token", true).add("tokenizer.ggml.add_eos_token", true);
  EXPECT_EQ(with("gpt-2", both)->encode("a", true, false), (Ids{bos, 'a', eos}));
  EXPECT_EQ(make(v, "gpt-2")->special().bos, 11) << "llama.cpp's default";
  EXPECT_EQ(make(v, "glm4")->special().bos, -1);
}

TEST(BpeTest, BytesThatAreNoUtf8AreReplacedAndCharactersMayLieAcrossTokens) {
  BpeVocab v;
  const auto t = make(v);
  EXPECT_EQ(t->encode("a\xff", false, false), (Ids{'a', 0xef, 0xbf, 0xbd}));
  EXPECT_EQ(t->encode("\xe2\x96", false, false), (Ids{0xef, 0xbf, 0xbd, 0xef, 0xbf, 0xbd}));
  EXPECT_EQ(t->piece(0xc3), "\xc3");
  const std::string text =
      "caf\xc3\xa9 \xf0\x9f\x9a\x80 \xe6\x97\xa5" + std::string("\0\x01\x7f", 3);
  EXPECT_EQ(t->decode(t->encode(text, false, false)), text);
}

TEST(BpeTest, WhatTheVocabularyCannotSpellIsLeftOutWithAWarning) {
  BpeVocab v;
  v.tokens[1] = "no byte";  // replaces U+0101
  const LogCapture log;
  const auto t = make(v, "gpt-2", GgufWriter().add("tokenizer.ggml.unknown_token_id", uint32_t{2}));
  EXPECT_EQ(t->encode("a\x01"
                      "b\x01",
                      false, false),
            (Ids{'a', 'b'}));
  ASSERT_EQ(std::count_if(log.warnings.begin(), log.warnings.end(),
                          [](const std::string& w) { return w.find("<0x01>") != w.npos; }),
            1);
}

TEST(BpeTest, Gemma4SpellsAsSentencePieceDoes) {
  const std::string space = "\xe2\x96\x81";
  GgufWriter w;
  std::vector<std::string> tokens = {"<pad>", "<bos>",      "a",    "b",       "ab",
                                     space,   space + "ab", "\n\n", "\xc3\xa9"};
  std::vector<int32_t> types = {3, 3, 1, 1, 1, 1, 1, 1, 1};
  for (int byte = 0; byte < 256; ++byte) {
    tokens.push_back(byte_alphabet::hex_spelling(static_cast<uint8_t>(byte)));
    types.push_back(6);
  }
  w.add("tokenizer.ggml.model", "gemma4").add("tokenizer.ggml.tokens", tokens);
  w.add("tokenizer.ggml.token_type", types);
  w.add("tokenizer.ggml.merges", std::vector<std::string>{"a b", space + " ab"});
  w.add("tokenizer.ggml.bos_token_id", uint32_t{1});
  const auto bytes = w.bytes();
  const auto t = Tokenizer::from_gguf(GgufFile::parse(bytes, "the-file"));
  const int32_t byte0 = 9;
  EXPECT_EQ(t->encode("ab ab", true, false), (Ids{1, 4, 6})) << "BOS whatever the file says";
  EXPECT_EQ(t->encode("\n\n", false, false), (Ids{7})) << "without a merge";
  EXPECT_EQ(t->encode("\n", false, false), (Ids{byte0 + '\n'}));
  EXPECT_EQ(t->encode("\xc3\xa9z", false, false), (Ids{8, byte0 + 'z'}));
  EXPECT_EQ(t->encode("\xe6\x97\xa5", false, false),
            (Ids{byte0 + 0xe6, byte0 + 0x97, byte0 + 0xa5}));
  EXPECT_EQ(t->decode(Ids{1, 4, 6, byte0 + 'z', 7}), "ab abz\n\n");
  EXPECT_EQ(t->piece(byte0 + 0xe6), "\xe6");
}

TEST(BpeTest, GptOssShowsTheFrameOfItsAnswersAndItsMessagesGoOn) {
  BpeVocab v;
  const int32_t channel = v.add("<|channel|>", BpeVocab::kControl);
  const int32_t end = v.add("<|end|>", BpeVocab::kControl);
  EXPECT_TRUE(make(v)->is_end_of_generation(end));
  const int32_t called = v.add("<|call|>", BpeVocab::kControl);
  const int32_t returned = v.add("<|return|>", BpeVocab::kControl);
  const auto t = make(v);
  EXPECT_FALSE(t->is_end_of_generation(end));
  EXPECT_TRUE(t->is_end_of_generation(called));
  EXPECT_TRUE(t->is_end_of_generation(returned));
  EXPECT_EQ(t->piece(channel), "<|channel|>");
  EXPECT_EQ(t->piece(end), "<|end|>");
  EXPECT_EQ(t->piece(returned), "");
  EXPECT_EQ(t->encode("<|channel|>", false, true), (Ids{channel}));
  EXPECT_GT(t->encode("<|channel|>", false, false).size(), 1u) << "text stays text";
}

TEST(BpeTest, FillInTheMiddleTokensAreControlTokensWhateverTheFileSays) {
  BpeVocab v;
  const int32_t pre = v.add("<fim_prefix>", BpeVocab::kUserDefined);
  const int32_t pad = v.add("<|fim_pad|>", BpeVocab::kUserDefined);
  const auto t = make(v);
  EXPECT_TRUE(t->is_control(pre));
  EXPECT_FALSE(t->is_end_of_generation(pre));
  EXPECT_TRUE(t->is_control(pad));
  EXPECT_TRUE(t->is_end_of_generation(pad));
}

TEST(BpeTest, MetadataThatIsMissingOrWrong) {
  const BpeVocab v;
  expect_error(ErrorCode::kBadModel,
               {"the-file", "tokenizer.ggml.pre", "'no-such'", "llama-bpe", "qwen2"},
               [&] { make(v, "no-such"); });
  const LogCapture log;
  EXPECT_EQ(make(v, "")->description(), "BPE, default");
  EXPECT_EQ(log.warnings.size(), 1u) << testing::PrintToString(log.warnings);
  for (const char* merge : {"ab", "a ", " a", ""}) {
    BpeVocab bad;
    bad.merges = {"a b", merge};
    expect_error(ErrorCode::kBadModel, {"the-file", "tokenizer.ggml.merges", "merge 1"},
                 [&] { make(bad); });
  }
  GgufWriter none;
  none.add("tokenizer.ggml.model", "gpt2").add("tokenizer.ggml.pre", "gpt-2");
  none.add("tokenizer.ggml.tokens", v.tokens);
  const auto bytes = none.bytes();
  expect_error(ErrorCode::kBadModel, {"tokenizer.ggml.merges", "missing"},
               [&] { Tokenizer::from_gguf(GgufFile::parse(bytes, "the-file")); });
}

TEST(BpeTest, EveryPreTokenizerKeepsTheText) {
  BpeVocab v;
  const std::string text =
      "Hello  World's 12345 \n\n x\t\xc3\xa9"
      "A\xe4\xb8\xad\xe6\x96\x87\xe3\x80\x80!?"
      "ab\xcc\x81 "
      "\xd9\xa1\xd9\xa2 I'LL (a+b) \xf0\x9f\x9a\x80   ";
  int n_names = 0;
  for (const PreTokenizer& p : pre_tokenizers()) {
    if (p.sentencepiece) continue;
    for (const std::string_view name : p.names) {
      const auto t = make(v, name, GgufWriter().add("tokenizer.ggml.add_bos_token", false));
      EXPECT_EQ(t->decode(t->encode(text, true, false)), text) << name;
      ++n_names;
    }
  }
  EXPECT_GT(n_names, 65);
}

// The texts that are hardest for the patterns: the time must not grow faster than the text.
TEST(BpeTest, EveryPreTokenizerTakesLinearTime) {
  BpeVocab v;
  v.merge("a", "a");
  v.merge(" ", " ");
  constexpr size_t kBytes = 300'000;
  const std::string units[] = {" ",
                               "\n",
                               " \n",
                               "a",
                               "aA",
                               "1",
                               "!",
                               "'",
                               "\xc3\xa9",
                               "\xe4\xb8\xad",
                               "\xcc\x81",
                               " a",
                               "\xc3\xa9"
                               "A",
                               "<sentinel:1",
                               "IMGIMGA",
                               "\r\n/"};
  for (const PreTokenizer& p : pre_tokenizers()) {
    if (p.sentencepiece) continue;
    const auto t = make(v, p.names[0], GgufWriter().add("tokenizer.ggml.add_bos_token", false));
    for (const std::string& unit : units) {
      std::string text;
      while (text.size() < kBytes) text += unit;
      const CpuTimer timer;
      EXPECT_FALSE(t->encode(text + "x", true, false).empty());
      EXPECT_LT(timer.seconds(), 20) << p.names[0] << " on '" << unit << "'";
    }
  }
}

}  // namespace
}  // namespace snapkv
