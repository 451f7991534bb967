// SPDX-License-Identifier: MIT
// Folders whose vocabulary is a tokenizer.model of SentencePiece: the metadata they become, the
// tokens of texts, and errors that name the file, the field, the expected and the actual value.
#include "tests/huggingface/piece_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "huggingface/sentencepiece.h"
#include "snapkv/tokenizer.h"
#include "tests/huggingface/folder_fixture.h"

namespace snapkv::test {
namespace {

class PieceModelTest : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    std::filesystem::remove(path_ + "/tokenizer.json");
    set_model([](PieceModel&) {});
  }
  /// Writes tokenizer.model as `change` leaves it.
  template <typename Change>
  void set_model(Change change) {
    PieceModel model;
    change(model);
    write_text(path_ + "/tokenizer.model", model.file());
  }
  template <typename Change>
  void expect_refused(Change change, std::initializer_list<std::string_view> words) {
    set_model(change);
    expect_bad({path_ + "/tokenizer.model"});
    expect_bad(words);
  }
  std::vector<int32_t> ids(const std::string& text) const {
    return Tokenizer::from_gguf(open())->encode(text, false, false);
  }
};

TEST_F(PieceModelTest, BecomesMetadata) {
  const GgufFile file = open();
  EXPECT_EQ(file.get_string("tokenizer.ggml.model"), "llama");
  EXPECT_EQ(file.get_string("tokenizer.ggml.pre"), "default");
  EXPECT_TRUE(file.get_bool("tokenizer.ggml.add_space_prefix", false));
  EXPECT_EQ(file.get_uint("tokenizer.ggml.bos_token_id"), 1u);
  EXPECT_EQ(file.get_uint("tokenizer.ggml.eos_token_id"), 2u);
  EXPECT_EQ(file.get_uint("tokenizer.ggml.unknown_token_id"), 0u);
  const auto tokens = file.get_strings("tokenizer.ggml.tokens");
  const auto types = file.get_ints("tokenizer.ggml.token_type");
  const auto scores = file.get_floats("tokenizer.ggml.scores");
  ASSERT_EQ(tokens.size(), 320u);
  ASSERT_EQ(types.size(), 320u);
  ASSERT_EQ(scores.size(), 320u);
  const PieceModel model;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const auto& piece = model.pieces[i];
    EXPECT_EQ(tokens[i], piece.text);
    EXPECT_EQ(scores[i], piece.score) << i;
    EXPECT_EQ(types[i], piece.type == 4 ? 1 : piece.type) << i;
  }
  EXPECT_EQ(tokens[319], "[PAD319]");
  EXPECT_EQ(types[319], 5);
  EXPECT_EQ(scores[319], -10000);
  EXPECT_EQ(file.get_ints("snapkv.tokenizer.user_defined_pieces"),
            (std::vector<int64_t>{259, 260, 261, 262}));
}

// Recorded from the Python package sentencepiece 0.2.3 with the same model.
TEST_F(PieceModelTest, IdsAreSentencePieces) {
  const std::map<std::string, std::vector<int32_t>> with_prefix = {
      {"the the", {267, 267}},
      {"in the rain", {272, 267, 273, 280, 276, 265}},
      {"abcdefg", {273, 260, 274, 105, 106}},
      {"xabcd<AI>the", {273, 123, 260, 259, 275, 264}},
      {" a", {262, 276}},
      {"<AI>the", {273, 259, 275, 264}},
      {"then  an anther \u00e9\u4f60\u597d\n",
       {267, 277, 262, 270, 266, 277, 275, 264, 280, 273, 284, 285, 232, 168, 192, 13}},
      {"</s>", {273, 63, 50, 118, 65}}};
  for (const auto& [text, expected] : with_prefix) EXPECT_EQ(ids(text), expected) << text;
  set_model([](PieceModel& m) { m.normalizer.integer(3, 0); });
  const std::map<std::string, std::vector<int32_t>> without_prefix = {
      {"the the", {275, 264, 267}},
      {"in the rain", {265, 267, 273, 280, 276, 265}},
      {"abcdefg", {260, 274, 105, 106}},
      {"xabcd<AI>the", {123, 260, 259, 275, 264}},
      {" a", {266}},
      {"<AI>the", {259, 275, 264}}};
  for (const auto& [text, expected] : without_prefix) EXPECT_EQ(ids(text), expected) << text;
  write_text(path_ + "/tokenizer_config.json", R"({"add_prefix_space": true})");
  EXPECT_EQ(ids("the the"), with_prefix.at("the the"));
}

TEST_F(PieceModelTest, OtherFilesAddAndReplaceTokens) {
  write_text(path_ + "/added_tokens.json",
             R"({"</s>": 2, "<|im_start|>": 290, "<extra>": 291, "<far>": 400})");
  write_text(path_ + "/tokenizer_config.json", R"({"added_tokens_decoder": {
      "0": {"content": "<unk>", "special": true},
      "259": {"content": "<|tool|>", "special": true},
      "260": {"content": "abcd", "special": false},
      "292": {"content": "two▁words", "special": false}}})");
  const GgufFile file = open();
  const auto tokens = file.get_strings("tokenizer.ggml.tokens");
  const auto types = file.get_ints("tokenizer.ggml.token_type");
  const auto scores = file.get_floats("tokenizer.ggml.scores");
  EXPECT_EQ(types[0], 2);
  EXPECT_EQ(types[2], 3);
  EXPECT_EQ(tokens[259], "<|tool|>");
  EXPECT_EQ(types[259], 3);
  EXPECT_EQ(types[260], 4);
  EXPECT_EQ(tokens[290], "<|im_start|>");
  EXPECT_EQ(types[290], 3);
  EXPECT_EQ(tokens[291], "<extra>");
  EXPECT_EQ(types[291], 4);
  EXPECT_EQ(tokens[292], "two words");
  EXPECT_EQ(scores[291], -1000);
  EXPECT_EQ(scores[292], -1000);
  EXPECT_EQ(file.get_ints("snapkv.tokenizer.user_defined_pieces"),
            (std::vector<int64_t>{261, 262}));
  write_text(path_ + "/added_tokens.json", R"({"he": 290})");
  expect_bad({"added_tokens.json", "he is 290, but 264 in tokenizer.model"});
  write_text(path_ + "/added_tokens.json", R"({"x": "290"})");
  expect_bad({"added_tokens.json", "x is \"290\""});
  write_text(path_ + "/added_tokens.json", "{}");
  write_text(path_ + "/tokenizer_config.json",
             R"({"added_tokens_decoder": {"290": {"content": "he"}}})");
  expect_bad({"added_tokens_decoder.290.content is 'he'", "id 264 in tokenizer.model"});
}

// Where no other file names the special tokens, the model does.
TEST_F(PieceModelTest, NamesSpecialTokens) {
  set_config({{"bos_token_id", nullptr}, {"eos_token_id", nullptr}, {"pad_token_id", nullptr}});
  write_text(path_ + "/tokenizer_config.json", "{}");
  set_model([](PieceModel& m) { m.trainer.integer(41, 2).integer(42, 1); });
  EXPECT_EQ(open().get_uint("tokenizer.ggml.bos_token_id"), 2u);
  EXPECT_EQ(open().get_uint("tokenizer.ggml.eos_token_id"), 1u);
  EXPECT_FALSE(open().has("tokenizer.ggml.add_bos_token"));
  EXPECT_FALSE(open().has("tokenizer.ggml.padding_token_id"));
  write_text(path_ + "/generation_config.json", R"({"eos_token_id": 2})");
  EXPECT_EQ(open().get_uint("tokenizer.ggml.eos_token_id"), 2u);
  set_model([](PieceModel& m) { m.trainer.integer(41, static_cast<uint64_t>(int64_t{-1})); });
  EXPECT_FALSE(open().has("tokenizer.ggml.bos_token_id"));
  EXPECT_FALSE(open().get_bool("tokenizer.ggml.add_bos_token", true));
}

TEST_F(PieceModelTest, RefusesOtherKinds) {
  using M = PieceModel;
  expect_refused([](M& m) { m.trainer.integer(3, 1); },
                 {"trainer_spec.model_type is 1 (UNIGRAM), supported is 2 (BPE)"});
  expect_refused([](M& m) { m.trainer.integer(3, 3); }, {"model_type is 3 (WORD)"});
  expect_refused([](M& m) { m.trainer.integer(3, 4); }, {"model_type is 4 (CHAR)"});
  expect_refused([](M& m) { m.trainer.integer(3, 9); }, {"model_type is 9"});
  expect_refused([](M& m) { m.trainer.integer(35, 0); }, {"trainer_spec.byte_fallback is false"});
  expect_refused([](M& m) { m.trainer.integer(24, 1); }, {"treat_whitespace_as_suffix is true"});
  expect_refused([](M& m) { m.normalizer.bytes(1, "nmt_nfkc").bytes(2, "abc"); },
                 {"normalizer_spec.precompiled_charsmap has 3 bytes", "'nmt_nfkc'", "'identity'"});
  expect_refused([](M& m) { m.normalizer.integer(4, 1); },
                 {"normalizer_spec.remove_extra_whitespaces is true, supported is false"});
  expect_refused([](M& m) { m.normalizer.integer(5, 0); },
                 {"normalizer_spec.escape_whitespaces is false, supported is true"});
  const std::string denormalizer = MessageWriter().bytes(2, "ab").str();
  write_text(path_ + "/tokenizer.model",
             PieceModel().file() + MessageWriter().bytes(5, denormalizer).str());
  expect_bad({"denormalizer_spec.precompiled_charsmap has 2 bytes"});
}

TEST_F(PieceModelTest, RefusesWrongPieces) {
  using M = PieceModel;
  expect_refused([](M& m) { m.pieces[264].text = "in"; },
                 {"pieces 264 and 265 have the same text 'in'"});
  expect_refused([](M& m) { m.pieces[264].type = 2; },
                 {"pieces 0 and 264 are of type UNKNOWN, expected one"});
  expect_refused([](M& m) { m.pieces[0].type = 1; }, {"no piece is of type UNKNOWN"});
  expect_refused([](M& m) { m.pieces[264].type = 5; }, {"piece 264 ('he') is of type UNUSED"});
  expect_refused([](M& m) { m.pieces[264].type = 6; },
                 {"piece 264 is of type BYTE, but is 'he', expected '<0x00>'"});
  expect_refused([](M& m) { m.pieces[13].type = 1; }, {"no piece '<0x0A>' of type BYTE"});
  expect_refused([](M& m) { m.pieces[264].type = 7; },
                 {"byte ", "the type of 'he' is 7, expected 1 to 6"});
  expect_refused([](M& m) { m.pieces[264].score = std::nanf(""); }, {"the score of 'he' is nan"});
  expect_refused([](M& m) { m.pieces[264].score = std::numeric_limits<float>::infinity(); },
                 {"the score of 'he' is inf"});
  expect_refused([](M& m) { m.pieces[264].text = ""; }, {"byte ", "a piece has no text"});
  expect_refused([](M& m) { m.pieces.clear(); }, {"the file ends without pieces"});
}

TEST_F(PieceModelTest, RefusesFoldersThatNeedMore) {
  write("chatglm3");
  std::filesystem::remove(path_ + "/tokenizer.json");
  expect_bad({path_ + "/tokenizer.model", "ChatGLM's control tokens"});
  std::filesystem::remove(path_ + "/tokenizer.model");
  expect_bad({path_, "neither tokenizer.json nor tokenizer.model"});
}

TEST_F(PieceModelTest, RefusesDamagedFiles) {
  const std::string file = PieceModel().file();
  const auto parse = [](const std::string& text) {
    const std::vector<char> exact(text.begin(), text.end());  // a sanitizer sees reads past the end
    return huggingface::parse_sentencepiece(std::as_bytes(std::span(exact)), "cut.model");
  };
  EXPECT_EQ(parse(file).pieces.size(), PieceModel().pieces.size());
  for (size_t n = 0; n < file.size(); ++n) {
    SCOPED_TRACE(n);
    expect_error(ErrorCode::kBadModel, {"'cut.model': byte "}, [&] { parse(file.substr(0, n)); });
  }
  const auto expect_wrong = [&](const std::string& more,
                                std::initializer_list<std::string_view> words) {
    expect_error(ErrorCode::kBadModel, {fmt::format("byte {}: ", file.size())},
                 [&] { parse(file + more); });
    expect_error(ErrorCode::kBadModel, words, [&] { parse(file + more); });
  };
  expect_wrong(std::string("\x02\x00", 2), {"the number 0, expected 1 to 536870911"});
  expect_wrong("\x33", {"field 6 of model has wire type 3, expected 0, 1, 2 or 5"});
  expect_wrong(MessageWriter().integer(1, 1).str(), {"model.pieces has wire type 0, expected 2"});
  expect_wrong(std::string(11, '\xff'), {"does not end within 64 bits"});
  // Fields that nothing reads are skipped, whatever their type.
  const std::string unknown = MessageWriter().integer(100, 1).f32(101, 1).bytes(102, "x").str();
  EXPECT_EQ(parse(unknown + "\x31" + "12345678" + file).pieces.size(), PieceModel().pieces.size());
  // A length near 2^64, of which nothing may be allocated.
  expect_error(ErrorCode::kBadModel, {"needs 18446744073709551615 more bytes"},
               [&] { parse("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"); });
}

}  // namespace
}  // namespace snapkv::test
