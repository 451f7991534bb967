// SPDX-License-Identifier: MIT
// /tokenize and what else clients ask about the vocabulary: the text of the answers.
#include <gtest/gtest.h>

#include "server/api/endpoints.h"
#include "tests/server/request_support.h"

namespace snapkv::test {
namespace {

TEST_F(Requests, TokenizeWritesIdsAndPieces) {
  const ApiContext context{engine_, options_};
  const std::string content = "Hello \"there\"\n\t\xc3\xa9 \xf0\x9f\x98\x80 \\";
  const std::vector<int32_t> ids = engine_.model().tokenize(content, /*add_special=*/false);
  EXPECT_EQ(Json::parse(tokenize({{"content", content}}, context)), (Json{{"tokens", ids}}));
  const Json json = Json::parse(tokenize({{"content", content}, {"with_pieces", true}}, context));
  ASSERT_EQ(json["tokens"].size(), ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(json["tokens"][i]["id"], ids[i]);
    const Json& piece = json["tokens"][i]["piece"];
    std::string bytes;
    if (piece.is_string()) {
      bytes = piece.get<std::string>();
    } else {
      for (const Json& byte : piece) bytes += static_cast<char>(byte.get<int>());
    }
    EXPECT_EQ(bytes, engine_.model().piece(ids[i], true));
  }
  EXPECT_EQ(tokenize({{"content", ""}, {"with_pieces", true}}, context), R"({"tokens":[]})");
}

TEST_F(Requests, TokenizeWritesLongTextsWhole) {
  std::string content;
  for (int i = 0; i < 20'000; ++i) content += "word ";
  const Json json = Json::parse(
      tokenize({{"content", content}, {"with_pieces", true}}, ApiContext{engine_, options_}));
  EXPECT_EQ(json["tokens"].size(), engine_.model().tokenize(content, false).size());
}

TEST_F(Requests, TokenizersOfVllmsClientsAreAnswered) {
  const ApiContext context{engine_, options_};
  const Tokenizer& tokenizer = engine_.model().tokenizer();
  const std::string text = "Hello there";
  const Json json = Json::parse(tokenize({{"prompt", text}}, context));
  const std::vector<int32_t> ids = engine_.model().tokenize(text, /*add_special=*/true);
  EXPECT_EQ(json["tokens"], Json(ids));
  EXPECT_EQ(json["count"], ids.size());
  EXPECT_GT(json["max_model_len"], 0);
  const Json plain =
      Json::parse(tokenize({{"prompt", text}, {"add_special_tokens", false}}, context));
  EXPECT_EQ(plain["tokens"], Json(engine_.model().tokenize(text, /*add_special=*/false)));
  EXPECT_EQ(detokenize({{"tokens", plain["tokens"]}}, context)["prompt"], text);
  const Json info = tokenizer_info_json(context);
  const int32_t eos = tokenizer.special().eos;
  EXPECT_EQ(info["eos_token"], eos < 0 ? Json() : Json(tokenizer.piece(eos, true)));
  EXPECT_EQ(info["chat_template"], options_.chat_template->source());
}

}  // namespace
}  // namespace snapkv::test
