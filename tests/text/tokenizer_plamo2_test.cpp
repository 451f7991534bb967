// SPDX-License-Identifier: MIT
// PLaMo 2's tokenizer on a small vocabulary. llama.cpp 0.7.0 computed the ids of TextsAsInLlamaCpp
// with the same vocabulary (its server's /tokenize).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/gguf.h"
#include "snapkv/tokenizer.h"
#include "tests/support/expect_error.h"
#include "tests/support/gguf_writer.h"

namespace snapkv {
namespace plamo_tokenizer_tests {

using test::expect_error;
using test::GgufWriter;
using Ids = std::vector<int32_t>;

constexpr int32_t kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kByte = 6;

/// Four special tokens, the bytes (ids 4 to 259), words with scores, and a user-defined token.
struct PlamoVocab {
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<int32_t> types;

  PlamoVocab() {
    add("<|plamo:unk|>", 0.0f, kUnknown);
    for (const char* text : {"<|plamo:bos|>", "<|plamo:eos|>", "<|plamo:pad|>"}) {
      add(text, 0.0f, kControl);
    }
    for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), 0.0f, kByte);
    const std::pair<const char*, float> words[] = {{"the", -3.0f},
                                                   {" the", -3.5f},
                                                   {"th", -4.0f},
                                                   {"he", -4.1f},
                                                   {"t", -6.0f},
                                                   {"h", -6.0f},
                                                   {"e", -6.0f},
                                                   {" ", -2.5f},
                                                   {"there", -9.5f},
                                                   {"re", -5.0f},
                                                   {"\u65e5\u672c", -5.0f},
                                                   {"\u65e5", -7.0f},
                                                   {"\u672c\u8a9e", -6.5f},
                                                   {"\u65e5\u672c\u8a9e", -11.5f},
                                                   {"\u8a9e", -7.5f},
                                                   {"\u00e9", -7.0f},
                                                   {"caf", -6.0f},
                                                   {"a", -5.5f},
                                                   {"b", -5.5f},
                                                   {"ab", -11.0f},
                                                   {"abc", -16.5f},
                                                   {"c", -5.5f},
                                                   {"bc", -11.0f},
                                                   {"\n", -4.0f},
                                                   {"\n\n", -8.0f},
                                                   {"same", -8.0f},
                                                   {"sa", -4.0f},
                                                   {"me", -4.0f},
                                                   {"lost", -1999.0f},
                                                   {"never", -2500.0f},  // too low to be chosen
                                                   {"nan", -std::numeric_limits<float>::infinity()},
                                                   {"good", 2.5f},
                                                   {"go", 1.0f},
                                                   {"od", 1.0f},
                                                   {"x", -1000.5f},  // lower than a byte
                                                   {"yy", -2100.0f},
                                                   {"yyy", -1500.0f},
                                                   {"\U0001f44d", -9.0f}};
    for (const auto& [text, score] : words) add(text, score, kNormal);
    add("<tool>", -1.0f, kUserDefined);
  }
  int32_t add(std::string text, float score, int32_t type) {
    tokens.push_back(std::move(text));
    scores.push_back(score);
    types.push_back(type);
    return static_cast<int32_t>(tokens.size()) - 1;
  }
  GgufWriter writer() const {
    GgufWriter w;
    w.add("tokenizer.ggml.model", "plamo2");
    w.add("tokenizer.ggml.tokens", tokens);
    w.add("tokenizer.ggml.scores", scores);
    return w.add("tokenizer.ggml.token_type", types);
  }
};

std::unique_ptr<Tokenizer> load(const GgufWriter& writer) {
  const auto bytes = writer.bytes();
  return Tokenizer::from_gguf(GgufFile::parse(bytes, "the-file"));
}

TEST(PlamoTokenizer, TextsAsInLlamaCpp) {
  const auto t = load(PlamoVocab().writer());
  const std::pair<std::string, Ids> cases[] = {
      {"", {}},
      {"the", {260}},
      {"there", {260, 269}},
      {" the there", {261, 261, 269}},
      {"\u65e5\u672c\u8a9e", {273}},
      {"\u65e5\u672c\u8a9e caf\u00e9", {273, 267, 276, 275}},
      {"abc", {280}},
      {"aabbcc", {277, 279, 282, 281}},
      {"same same", {285, 267, 285}},
      {"good", {291}},
      {"lost", {288}},
      {"never", {114, 266, 122, 266, 118}},
      {"nan", {114, 277, 114}},
      {"xx", {124, 124}},
      {"yyyyy", {296, 125, 125}},
      {"\n\n\n", {284, 283}},
      {"\U0001f44d ok", {297, 267, 115, 111}},
      {"the\ufeff", {260, 243, 191, 195}},
      {"q\tq", {117, 13, 117}},
      {"<tool>the<tool>", {298, 260, 298}},
      {"\U0001d11e\u65e5", {244, 161, 136, 162, 271}},
      {"the <0x41> A", {260, 267, 64, 52, 124, 56, 53, 66, 267, 69}},
  };
  for (const auto& [text, ids] : cases) {
    SCOPED_TRACE(text);
    EXPECT_EQ(t->encode(text, true, false), ids);
    EXPECT_EQ(t->decode(ids), text);
  }
  // a byte order mark at the beginning of a text is left out
  EXPECT_EQ(t->encode("\ufeffthe", true, false), (Ids{260}));
  EXPECT_EQ(t->encode("ab<tool>\ufeffab", true, false), (Ids{279, 298, 279}));
}

TEST(PlamoTokenizer, SpecialTokens) {
  const auto t = load(PlamoVocab().writer().add("tokenizer.ggml.add_bos_token", true));
  EXPECT_EQ(t->special().bos, 1);
  EXPECT_EQ(t->special().eos, 2);
  EXPECT_EQ(t->encode("the", true, false), (Ids{1, 260}));
  EXPECT_EQ(t->encode("<|plamo:bos|>the<|plamo:eos|>", false, true), (Ids{1, 260, 2}));
  // what a user types is a text
  const Ids typed = t->encode("<|plamo:bos|>the", false, false);
  EXPECT_EQ(typed[0], '<' + 4);
  EXPECT_EQ(t->decode(typed), "<|plamo:bos|>the");
  EXPECT_EQ(t->piece(1), "");
  EXPECT_EQ(t->piece(1, true), "<|plamo:bos|>");
  EXPECT_EQ(t->piece(4 + 0xe3), "\xe3");
}

TEST(PlamoTokenizer, BytesOfInvalidTextsAreReplaced) {
  const auto t = load(PlamoVocab().writer());
  EXPECT_EQ(t->decode(t->encode("the\xff"
                                "the\xe6\x97",
                                true, false)),
            "the\ufffdthe\ufffd\ufffd");
}

TEST(PlamoTokenizer, DamagedVocabulariesAreRefused) {
  const auto refused = [](const PlamoVocab& vocab, std::initializer_list<std::string_view> words) {
    expect_error(ErrorCode::kBadModel, words, [&] { load(vocab.writer()); });
  };
  PlamoVocab without;
  without.tokens['q' + 4] = "<0x71>q";
  without.types['q' + 4] = kNormal;
  refused(without, {"the-file", "tokenizer.ggml.tokens", "0x71", "byte"});
  PlamoVocab no_byte;
  no_byte.add("<0xZZ>", 0.0f, kByte);
  refused(no_byte, {"the-file", "token 299", "type byte"});
  PlamoVocab high;
  high.add("high", 1e6f, kNormal);
  refused(high, {"the-file", "tokenizer.ggml.scores", "token 299", "1000000"});
  PlamoVocab longest;
  longest.add(std::string(1025, 'l'), 0.0f, kNormal);
  refused(longest, {"the-file", "tokenizer.ggml.tokens", "token 299", "1025 bytes"});
  PlamoVocab fewer;
  fewer.scores.pop_back();
  refused(fewer, {"the-file", "tokenizer.ggml.scores"});
}

}  // namespace plamo_tokenizer_tests
}  // namespace snapkv
