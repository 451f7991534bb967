// SPDX-License-Identifier: MIT
// RWKV's tokenizer on a small vocabulary. llama.cpp 0.7.0 computed the ids of TextsAsInLlamaCpp
// with the same vocabulary (its server's /tokenize).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
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
namespace rwkv_tokenizer_tests {

using test::expect_error;
using test::GgufWriter;
using Ids = std::vector<int32_t>;

constexpr int32_t kNormal = 1, kControl = 3, kUserDefined = 4;

/// "<s>", the bytes (ids 1 to 256) as Python spells them, and a few longer tokens.
struct RwkvVocab {
  std::vector<std::string> tokens = {"<s>"};
  std::vector<int32_t> types = {kControl};

  RwkvVocab() {
    for (int byte = 0; byte < 256; ++byte) {
      const char c = static_cast<char>(byte);
      const bool plain = byte >= 0x20 && byte < 0x7f && c != '\\';
      add(c == '\t'   ? "\\t"
          : c == '\n' ? "\\n"
          : c == '\r' ? "\\r"
          : c == '\\' ? "\\\\"
          : plain     ? std::string(1, c)
                      : fmt::format("\\x{:02x}", byte));
    }
    for (const char* text :
         {"\\n\\n", "th", "the", "ther", " the", "\\xc3\\xa9", "\\xe6\\x97\\xa5", "\\xe6\\x97",
          "User", ": ", "Assistant:", "it\\'s", "\\\\n", "    ", "  "}) {
      add(text);
    }
  }
  int32_t add(std::string text, int32_t type = kNormal) {
    tokens.push_back(std::move(text));
    types.push_back(type);
    return static_cast<int32_t>(tokens.size()) - 1;
  }
  GgufWriter writer() const {
    GgufWriter w;
    w.add("tokenizer.ggml.model", "rwkv");
    w.add("tokenizer.ggml.tokens", tokens);
    w.add("tokenizer.ggml.token_type", types);
    w.add("tokenizer.ggml.bos_token_id", uint32_t{0});
    w.add("tokenizer.ggml.eos_token_id", uint32_t{0});
    return w.add("tokenizer.ggml.eot_token_id", uint32_t{257});
  }
};

std::unique_ptr<Tokenizer> load(const GgufWriter& writer) {
  const auto bytes = writer.bytes();
  return Tokenizer::from_gguf(GgufFile::parse(bytes, "the-file"));
}

TEST(RwkvTokenizer, TextsAsInLlamaCpp) {
  const auto t = load(RwkvVocab().writer());
  const std::pair<std::string, Ids> cases[] = {
      {"", {}},
      {"the other thermal", {259, 33, 112, 260, 261, 115, 110, 98, 109}},
      {"User: Hello\n\nAssistant: it's \u65e5\u672c, caf\u00e9\n",
       {265, 266, 73,  102, 109, 109, 112, 257, 267, 33,  268, 33,
        263, 231, 157, 173, 45,  33,  100, 98,  103, 262, 11}},
      {"\n\n\n", {257, 11}},
      {"\\n x\ty\r\n", {269, 33, 121, 10, 122, 14, 11}},
      {"       seven", {270, 271, 33, 116, 102, 119, 102, 111}},
      {"it's it\\'s", {268, 33, 106, 117, 93, 40, 116}},
      {std::string("\u65e5 \u00e9 \0\x7f", 9), {263, 33, 262, 33, 1, 128}},
      {"thethethe ther", {259, 259, 259, 261, 115}},
      {"\xf0\x9f\x98\x80 ok", {241, 160, 153, 129, 33, 112, 108}},
      {"  \n\n  the", {271, 257, 271, 259}},
  };
  for (const auto& [text, ids] : cases) {
    SCOPED_TRACE(text);
    EXPECT_EQ(t->encode(text, true, false), ids);
    EXPECT_EQ(t->encode(text, true, true), ids);
    EXPECT_EQ(t->decode(ids), text);
  }
}

TEST(RwkvTokenizer, TheLongestTokenIsTakenEachTime) {
  RwkvVocab vocab;
  const int32_t long_one = vocab.add("thermal");
  const auto t = load(vocab.writer());
  EXPECT_EQ(t->encode("thermal", false, false), (Ids{long_one}));
  // "therma" is no token, so the text goes on after "ther"
  EXPECT_EQ(t->encode("thermas", false, false), (Ids{260, 'm' + 1, 'a' + 1, 's' + 1}));
  EXPECT_EQ(t->encode("thth", false, false), (Ids{258, 258}));
}

TEST(RwkvTokenizer, AnyBytesComeBack) {
  const auto t = load(RwkvVocab().writer());
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 7919 % 256);
  EXPECT_EQ(t->decode(t->encode(text, true, false)), text);
  EXPECT_EQ(t->piece(1), std::string(1, '\0'));
  EXPECT_EQ(t->token_text(1), "\\x00");
  EXPECT_EQ(t->find("\\n\\n"), 257);
}

TEST(RwkvTokenizer, TheEndOfATurnIsATextToo) {
  const auto t = load(RwkvVocab().writer());
  EXPECT_EQ(t->special().eot, 257);
  EXPECT_TRUE(t->is_end_of_generation(257));
  EXPECT_TRUE(t->is_end_of_generation(0));
  EXPECT_FALSE(t->is_end_of_generation('\n' + 1));
  EXPECT_FALSE(t->is_control(257));
  EXPECT_EQ(t->piece(257), "\n\n");
  EXPECT_EQ(t->encode("a\n\n", true, false), (Ids{'a' + 1, 257}));
  EXPECT_FALSE(t->special().add_bos);
}

TEST(RwkvTokenizer, TextBecomesAControlTokenOnlyOnRequest) {
  RwkvVocab vocab;
  const int32_t user = vocab.add("<tool>", kUserDefined);
  const auto t = load(vocab.writer());
  EXPECT_EQ(t->encode("<s>", false, true), (Ids{0}));
  EXPECT_EQ(t->encode("<s>", false, false), (Ids{'<' + 1, 's' + 1, '>' + 1}));
  EXPECT_EQ(t->encode("x<tool>", false, false), (Ids{'x' + 1, user}));
  EXPECT_EQ(t->piece(0), "");
  EXPECT_EQ(t->piece(0, true), "<s>");
}

TEST(RwkvTokenizer, DamagedVocabulariesAreRefused) {
  const auto refused = [](const RwkvVocab& vocab, std::initializer_list<std::string_view> words) {
    expect_error(ErrorCode::kBadModel, words, [&] { load(vocab.writer()); });
  };
  for (const char* text : {"\\", "a\\", "\\x", "\\x1", "\\xg1", "\\x1g"}) {
    RwkvVocab vocab;
    vocab.add(text);
    refused(vocab, {"the-file", "tokenizer.ggml.tokens", "token 272", text, "escape"});
  }
  RwkvVocab without;
  without.tokens['q' + 1] = "qq";
  refused(without, {"the-file", "tokenizer.ggml.tokens", "0x71", "no unknown token"});
  const auto unknown = load(without.writer().add("tokenizer.ggml.unknown_token_id", uint32_t{0}));
  EXPECT_EQ(unknown->encode("qaqq", false, false), (Ids{0, 'a' + 1, 'q' + 1}));
  RwkvVocab twice;
  twice.add("the");
  refused(twice, {"tokens 259 and 272", "same text"});
  // other spellings of the same bytes: the last one counts
  RwkvVocab respelled;
  const int32_t last = respelled.add("\\x74he");
  EXPECT_EQ(load(respelled.writer())->encode("the", false, false), (Ids{last}));
}

}  // namespace rwkv_tokenizer_tests
}  // namespace snapkv
