// SPDX-License-Identifier: MIT
// Tokenizer metadata that is missing, wrong or unsupported gives an Error that names the key.
#include <gtest/gtest.h>

#include <cmath>

#include "format/gguf.h"
#include "snapkv/tokenizer.h"
#include "tests/support/expect_error.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/spm_vocab.h"

namespace snapkv {
namespace {

using test::expect_error;
using test::GgufWriter;
using test::SpmVocab;

void expect_bad(const GgufWriter& writer, std::initializer_list<std::string_view> words) {
  const auto bytes = writer.bytes();
  const auto file = GgufFile::parse(bytes, "the-file");
  expect_error(ErrorCode::kBadModel, words, [&] { Tokenizer::from_gguf(file); });
}

GgufWriter written(const SpmVocab& vocab, GgufWriter writer = GgufWriter()) {
  return vocab.write_to(writer);
}

TEST(TokenizerErrorTest, Kind) {
  expect_bad(GgufWriter(), {"the-file", "tokenizer.ggml.model", "missing"});
  expect_bad(GgufWriter().add("tokenizer.ggml.model", 3), {"tokenizer.ggml.model", "string"});
  for (const char* kind : {"bert", "t5", "no_vocab", ""}) {
    expect_bad(GgufWriter().add("tokenizer.ggml.model", kind),
               {"the-file", "tokenizer.ggml.model", kind, "not supported", "'gpt2'"});
  }
}

TEST(TokenizerErrorTest, MissingOrWrongArrays) {
  GgufWriter w;
  w.add("tokenizer.ggml.model", "llama");
  expect_bad(w, {"tokenizer.ggml.tokens", "missing"});
  expect_bad(GgufWriter(w).add("tokenizer.ggml.tokens", "x"), {"tokenizer.ggml.tokens", "array"});
  expect_bad(GgufWriter(w).add("tokenizer.ggml.tokens", std::vector<std::string>{}),
             {"tokenizer.ggml.tokens", "0 elements"});
  w.add("tokenizer.ggml.tokens", std::vector<std::string>{"<unk>", "a", "b"});
  expect_bad(w, {"tokenizer.ggml.token_type", "missing"});
  expect_bad(GgufWriter(w).add("tokenizer.ggml.token_type", std::vector<int32_t>{2, 1}),
             {"tokenizer.ggml.token_type", "2 elements", "has 3"});
  expect_bad(GgufWriter(w).add("tokenizer.ggml.token_type", std::vector<int32_t>{2, 1, 7}),
             {"tokenizer.ggml.token_type", "token 2", "7"});
  expect_bad(GgufWriter(w).add("tokenizer.ggml.token_type", std::vector<int32_t>{2, 1, -1}),
             {"tokenizer.ggml.token_type", "-1"});
  w.add("tokenizer.ggml.token_type", std::vector<int32_t>{2, 1, 1});
  expect_bad(w, {"tokenizer.ggml.scores", "missing"});
  expect_bad(GgufWriter(w).add("tokenizer.ggml.scores", std::vector<float>{1, 2, 3, 4}),
             {"tokenizer.ggml.scores", "4 elements", "has 3"});
  expect_bad(GgufWriter(w).add("tokenizer.ggml.scores", std::vector<float>{1, 2, NAN}),
             {"tokenizer.ggml.scores", "token 2", "not a number"});
}

TEST(TokenizerErrorTest, Tokens) {
  SpmVocab twice;
  twice.add("x", 0);
  twice.add("x", 0);
  expect_bad(written(twice), {"tokenizer.ggml.tokens", "259", "260", "same text"});
  for (const char* text : {"x", "<0xG0>", "<0x0a>", "<0x000>", "<0x00"}) {
    SpmVocab vocab(/*with_bytes=*/false);
    vocab.add(text, 0, SpmVocab::kByte);
    expect_bad(written(vocab), {"token 3", "type byte"});
  }
  SpmVocab none(/*with_bytes=*/false);
  expect_bad(written(none, GgufWriter().add("tokenizer.ggml.unknown_token_id", ~uint32_t{0})),
             {"<0x00>", "unknown"});
}

TEST(TokenizerErrorTest, SpecialIds) {
  const SpmVocab vocab;
  for (const std::string key : {"bos", "eos", "eot", "eom", "unknown", "padding"}) {
    const std::string full = "tokenizer.ggml." + key + "_token_id";
    expect_bad(written(vocab, GgufWriter().add(full, uint32_t{259})), {full, "259", "259 tokens"});
    expect_bad(written(vocab, GgufWriter().add(full, ~uint64_t{0})), {full});
    expect_bad(written(vocab, GgufWriter().add(full, int32_t{-2})), {full, "-2"});
    expect_bad(written(vocab, GgufWriter().add(full, "x")), {full, "string"});
  }
  for (const std::string key : {"add_bos_token", "add_eos_token", "add_space_prefix"}) {
    const std::string full = "tokenizer.ggml." + key;
    expect_bad(written(vocab, GgufWriter().add(full, uint8_t{1})), {full, "bool"});
  }
  expect_bad(written(vocab, GgufWriter().add("tokenizer.ggml.bos_token_id", ~uint32_t{0})),
             {"BOS", "bos_token_id"});
  GgufWriter no_eos;
  no_eos.add("tokenizer.ggml.add_eos_token", true);
  no_eos.add("tokenizer.ggml.eos_token_id", ~uint32_t{0});
  expect_bad(written(vocab, no_eos), {"EOS", "eos_token_id"});
}

TEST(TokenizerErrorTest, IdsOutOfTheVocabulary) {
  const auto bytes = written(SpmVocab()).bytes();
  const auto t = Tokenizer::from_gguf(GgufFile::parse(bytes, "the-file"));
  for (const int32_t id : {-1, 259, 1 << 30}) {
    expect_error(ErrorCode::kUsage, {std::to_string(id), "259"}, [&] { t->piece(id); });
    expect_error(ErrorCode::kUsage, {std::to_string(id)},
                 [&] { t->decode(std::vector<int32_t>{id}); });
  }
}

}  // namespace
}  // namespace snapkv
