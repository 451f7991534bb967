// SPDX-License-Identifier: MIT
// tokenizer.json: the ids and texts of Hugging Face's tokenizers for every supported component,
// recorded by tools/huggingface_oracle.py; what a file must have; and errors that name what is not
// supported.
#include "text/tokenizer_json.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/expect_error.h"

namespace snapkv {
namespace {

using Json = nlohmann::json;
using test::expect_error;
using Ids = std::vector<int32_t>;

std::unique_ptr<Tokenizer> make(const std::string& text, const JsonTokenizer::Config& config = {}) {
  return JsonTokenizer::make(parse_tokenizer_file(text, "the-file"), config);
}
std::unique_ptr<Tokenizer> make(const Json& json, const JsonTokenizer::Config& config = {}) {
  return make(json.dump(), config);
}

TEST(TokenizerJsonTest, IdsAndTextsOfHuggingFacesTokenizers) {
  std::ifstream in(std::string(SNAPKV_SOURCE_DIR) + "/tests/text/golden/huggingface.json");
  const Json golden = Json::parse(in);
  ASSERT_GT(golden.at("cases").size(), 20u);
  for (const Json& c : golden.at("cases")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    const auto tokenizer = make(c.at("tokenizer"));
    for (size_t i = 0; i < golden.at("texts").size(); ++i) {
      const auto text = golden.at("texts")[i].get<std::string>();
      const auto ids = c.at("ids")[i].get<Ids>();
      EXPECT_EQ(tokenizer->encode(text, true, true), ids) << i << ": '" << text << "'";
      EXPECT_EQ(tokenizer->decode(ids), c.at("decoded")[i].get<std::string>()) << i << ": " << text;
    }
  }
}

/// A small valid file.
Json small() {
  return Json::parse(R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<u>": 3},
    "merges": ["a b"], "unk_token": "<u>"}, "added_tokens": [{"id": 3, "content": "<u>",
    "special": true}, {"id": 4, "content": "<t>", "special": false}]})");
}

void expect_bad(const Json& json, std::initializer_list<std::string_view> words) {
  expect_error(ErrorCode::kBadModel, words, [&] { make(json); });
}
void expect_bad(const char* text, std::initializer_list<std::string_view> words) {
  expect_error(ErrorCode::kBadModel, words, [&] { make(std::string(text)); });
}

TEST(TokenizerJsonTest, TextIsNoJson) {
  expect_bad("", {"the-file", "JSON"});
  expect_bad("{\"a\": }", {"the-file", "byte 7"});
  expect_bad("[]", {"the-file", "object"});
  expect_bad("3", {"the-file", "object"});
  expect_bad("{} {}", {"the-file", "byte 4"});
  expect_bad("{\"a\": \"\xff\"}", {"the-file", "byte"});
  expect_bad(("{\"a\":" + std::string(100, '[')).c_str(), {"the-file", "deeper"});
  expect_bad(("{\"a\":" + std::string(1'000'000, '[')).c_str(), {"the-file", "deeper"});
}

TEST(TokenizerJsonTest, TheVocabularysTables) {
  const auto model = [](const std::string& inside) { return "{\"model\": {" + inside + "}}"; };
  expect_bad("{}", {"the-file", "vocabulary is empty"});
  expect_bad(model("\"vocab\": {\"a\": \"x\"}").c_str(), {"model.vocab", "'a'", "an id"});
  expect_bad(model("\"vocab\": {\"a\": 1.5}").c_str(), {"model.vocab", "'a'"});
  expect_bad(model("\"vocab\": {\"a\": {}}").c_str(), {"model.vocab", "'a'", "object"});
  expect_bad(model("\"vocab\": {\"a\": -1}").c_str(), {"model.vocab", "'a'", "-1"});
  expect_bad(model("\"vocab\": {\"a\": 9223372036854775807}").c_str(), {"highest id"});
  expect_bad(model("\"vocab\": {\"a\": 18446744073709551615}").c_str(), {"2^63"});
  expect_bad(model("\"vocab\": {\"a\": 200000}").c_str(), {"highest id is 200000", "1 tokens"});
  expect_bad(model("\"vocab\": {\"a\": 0, \"b\": 0}").c_str(), {"'a'", "'b'", "id 0"});
  expect_bad(model("\"vocab\": {}, \"vocab\": {}").c_str(), {"two model.vocab"});
  expect_bad(model("\"vocab\": [[\"a\"]]").c_str(), {"model.vocab[0]"});
  expect_bad(model("\"vocab\": [[\"a\", 1, 2]]").c_str(), {"model.vocab"});
  expect_bad(model("\"vocab\": [\"a\"]").c_str(), {"model.vocab[0]", "[text, score]"});
  expect_bad(model("\"vocab\": [[\"a\", 1e999]]").c_str(), {"byte", "1e999"});
  expect_bad(model("\"vocab\": {\"a\": 0}, \"merges\": [\"ab\"]").c_str(), {"merges[0]", "'ab'"});
  expect_bad(model("\"vocab\": {\"a\": 0}, \"merges\": [[\"a\"]]").c_str(), {"merges[0]"});
  expect_bad(model("\"vocab\": {\"a\": 0}, \"merges\": [3]").c_str(), {"merges[0]", "number"});
  Json json = small();
  json["model"]["merges"] = {"a c"};
  expect_bad(json, {"merge 0", "'ac'"});
  json = small();
  json["model"].erase("vocab");
  expect_bad(json, {"vocab"});
  json = small();
  json["model"].erase("merges");
  expect_bad(json, {"model.merges"});
  json = small();
  json["model"]["type"] = "Unigram";  // its vocabulary must be a list
  expect_bad(json, {"the-file", "model.vocab", "scores"});
}

TEST(TokenizerJsonTest, AddedTokens) {
  const auto with = [](const char* token) {
    Json json = small();
    json["added_tokens"].push_back(Json::parse(token));
    return json;
  };
  expect_bad(with(R"({"content": "x"})"), {"added_tokens[2].id"});
  expect_bad(with(R"({"id": -1, "content": "x"})"), {"added_tokens[2].id", "-1"});
  expect_bad(with(R"({"id": 9})"), {"added_tokens[2].content"});
  expect_bad(with(R"({"id": 9, "content": ""})"), {"added_tokens[2]", "empty"});
  expect_bad(with(R"({"id": 0, "content": "x"})"), {"added_tokens[2]", "'x'", "'a'"});
  expect_bad(with(R"({"id": 9, "content": "a"})"), {"same text"});
  expect_bad(with(R"({"id": 9, "content": "x", "lstrip": 1})"), {"lstrip", "true or false"});
  expect_bad(with(R"({"id": 3000000000, "content": "x"})"), {"id"});
  Json json = small();
  json["added_tokens"] = 3;
  expect_bad(json, {"added_tokens", "array"});
}

TEST(TokenizerJsonTest, DecodersApplyToAddedTokens) {
  // Gemma's vocabularies add tokens of several spaces, spelled in the same way as the model's own
  // tokens.
  Json json = small();
  json["added_tokens"].push_back({{"id", 5}, {"content", "__"}});
  json["decoder"] = {{"type", "Replace"}, {"pattern", {{"String", "_"}}}, {"content", " "}};
  EXPECT_EQ(make(json)->piece(5), "  ");
  // Only the model's own tokens are spelled in bytes: this added token is a plain character.
  json["added_tokens"][2]["content"] = "\xc3\xa9";
  json["decoder"] = {{"type", "ByteLevel"}};
  EXPECT_EQ(make(json)->piece(5), "\xc3\xa9");
}

TEST(TokenizerJsonTest, ComponentsThatAreNotSupportedAreNamed) {
  const auto with = [](const char* place, const char* value) {
    Json json = small();
    json[Json::json_pointer(place)] = Json::parse(value);
    return json;
  };
  expect_bad(with("/model/type", "\"WordPiece\""), {"model.type", "'WordPiece'", "BPE"});
  expect_bad(with("/model/dropout", "0.1"), {"model.dropout"});
  expect_bad(with("/model/end_of_word_suffix", "\"</w>\""), {"model.end_of_word_suffix"});
  expect_bad(with("/model/continuing_subword_prefix", "\"##\""), {"continuing_subword_prefix"});
  expect_bad(with("/model/unk_token", "\"?\""), {"model.unk_token", "?"});
  expect_bad(with("/normalizer", R"({"type": "Lowercase"})"),
             {"normalizer.type", "'Lowercase'", "NFC"});
  expect_bad(
      with("/normalizer", R"({"type": "Sequence", "normalizers": [{"type": "Precompiled"}]})"),
      {"normalizer.normalizers[0].type", "'Precompiled'"});
  expect_bad(with("/normalizer", R"({})"), {"normalizer.type"});
  expect_bad(
      with("/normalizer", R"({"type": "Replace", "pattern": {"Regex": "("}, "content": ""})"),
      {"normalizer.pattern", "byte 1"});
  expect_bad(with("/normalizer", R"({"type": "Replace", "pattern": {}, "content": ""})"),
             {"normalizer.pattern"});
  expect_bad(with("/pre_tokenizer", R"({"type": "BertPreTokenizer"})"),
             {"pre_tokenizer.type", "'BertPreTokenizer'", "ByteLevel"});
  expect_bad(with("/pre_tokenizer", R"({"type": "Split", "pattern": {"String": ""}})"),
             {"pre_tokenizer.pattern.String"});
  expect_bad(with("/pre_tokenizer",
                  R"({"type": "Split", "pattern": {"String": "a"}, "behavior": "Sometimes"})"),
             {"pre_tokenizer.behavior", "'Sometimes'", "Isolated"});
  expect_bad(with("/pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [
                  {"type": "ByteLevel"}, {"type": "ByteLevel"}]})"),
             {"second ByteLevel"});
  expect_bad(with("/decoder", R"({"type": "WordPiece"})"), {"decoder.type", "'WordPiece'"});
  expect_bad(with("/decoder", R"({"type": "Strip", "content": " ", "start": 1})"), {"Fuse"});
  expect_bad(with("/post_processor", R"({"type": "Other"})"), {"post_processor.type", "'Other'"});
  expect_bad(with("/post_processor", R"({"type": "TemplateProcessing", "single": [
                  {"SpecialToken": {"id": "x"}}, {"Sequence": {"id": "A"}}], "special_tokens": {}})"),
             {"special_tokens"});
  expect_bad(with("/post_processor", R"({"type": "TemplateProcessing", "single": [
                  {"SpecialToken": {"id": "x"}}, {"Sequence": {"id": "A"}}],
                  "special_tokens": {"x": {"ids": [77]}}})"),
             {"ids[0]", "77"});
  expect_bad(with("/post_processor", R"({"type": "TemplateProcessing", "single": []})"),
             {"Sequence"});
}

TEST(TokenizerJsonTest, WhatLiesBesideTheFile) {
  JsonTokenizer::Config config;
  config.tokenizer = Json::parse(R"({"bos_token": {"content": "<u>"}, "eos_token": "<t>"})");
  config.generation = Json::parse(R"({"eos_token_id": [1, 2]})");
  const auto t = make(small(), config);
  EXPECT_EQ(t->special().bos, 3);
  EXPECT_EQ(t->special().eos, 4);
  EXPECT_FALSE(t->special().add_bos) << "the post-processor says, and there is none";
  EXPECT_TRUE(t->is_end_of_generation(4));
  EXPECT_TRUE(t->is_end_of_generation(1));
  EXPECT_FALSE(t->is_end_of_generation(0));
  config.generation = Json::parse(R"({"eos_token_id": 5})");
  expect_error(ErrorCode::kBadModel, {"eos_token_id", "5"}, [&] { make(small(), config); });
}

TEST(TokenizerJsonTest, TokensThatBecomeControlTokensDoNotComeOutOfText) {
  // "[e~[" ends a turn in some models. Here it is an ordinary token of the vocabulary.
  const auto unigram = make(std::string(R"({"model": {"type": "Unigram", "unk_id": 5, "vocab": [
    ["[e~[", 0], ["[", -2], ["e", -2], ["~", -2], ["a", -1], ["<u>", -9]]}})"));
  EXPECT_TRUE(unigram->is_control(0));
  EXPECT_EQ(unigram->encode("a[e~[", false, false), (Ids{4, 1, 2, 3, 1}));

  const auto bpe = make(std::string(R"({"model": {"type": "BPE", "vocab": {"[": 0, "e": 1, "~": 2,
    "[e": 3, "~[": 4, "[e~[": 5}, "merges": ["[ e", "~ [", "[e ~["]}})"));
  EXPECT_TRUE(bpe->is_control(5));
  EXPECT_EQ(bpe->encode("e[e~[", false, false), (Ids{1, 3, 4}));

  // The same holds for an added token that is not special in the file.
  Json json = small();
  json["model"]["vocab"]["</s>"] = 4;
  json["model"]["merges"].push_back("</s >");
  json["model"]["vocab"]["</s"] = 5;
  json["model"]["vocab"][">"] = 6;
  json["added_tokens"][1]["content"] = "</s>";
  const auto listed = make(json);
  EXPECT_TRUE(listed->is_control(4));
  for (const int32_t id : listed->encode("a</s>", false, false)) EXPECT_NE(id, 4);
  EXPECT_EQ(listed->encode("a</s>", false, true), (Ids{0, 4}));

  // And for the token that the configuration names as EOS, which is still found where control
  // tokens are wanted.
  JsonTokenizer::Config config;
  config.tokenizer = Json::parse(R"({"eos_token": "ab"})");
  const auto named = make(small(), config);
  EXPECT_TRUE(named->is_control(2));
  EXPECT_EQ(named->encode("ab", false, false), (Ids{0, 1}));
  EXPECT_EQ(named->encode("bab", false, true), (Ids{1, 2}));
}

TEST(TokenizerJsonTest, ControlTokensInTheTextOnlyWhereTheyAreWanted) {
  const auto t = make(small());
  EXPECT_EQ(t->encode("ab<u>a<t>", false, true), (Ids{2, 3, 0, 4}));
  EXPECT_EQ(t->encode("<t>", false, false), (Ids{4}));
  for (const int32_t id : t->encode("<t>x", false, false)) EXPECT_TRUE(id == 4 || id == 3) << id;
  EXPECT_EQ(t->piece(3), "");
  EXPECT_EQ(t->piece(3, true), "<u>");
  EXPECT_EQ(t->find("<u>"), 3);
  EXPECT_EQ(t->token_text(2), "ab");
  expect_error(ErrorCode::kUsage, {"5"}, [&] { t->piece(5); });
}

}  // namespace
}  // namespace snapkv
