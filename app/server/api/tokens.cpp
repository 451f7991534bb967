// SPDX-License-Identifier: MIT
// /tokenize, /detokenize and /apply-template, in llama-server's shapes.
#include <fmt/core.h>

#include "server/api/endpoints.h"
#include "server/api/fields.h"
#include "snapkv/text_stream.h"

namespace snapkv::server {
namespace {

/// As a string, or as an array of bytes where it is no text by itself.
Json piece_json(const std::string& bytes) {
  try {
    (void)Json(bytes).dump();
    return bytes;
  } catch (const Json::exception&) {
    Json list = Json::array();
    for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
    return list;
  }
}

}  // namespace

Json tokenize(const Json& json, const ApiContext& context) {
  const Fields body(json);
  const bool add_special = body.boolean("add_special").value_or(false);
  const bool parse_special = body.boolean("parse_special").value_or(true);
  const bool with_pieces = body.boolean("with_pieces").value_or(false);
  const std::vector<int32_t> ids =
      context.model().tokenize(body.needed_text("content"), add_special, parse_special);
  if (!with_pieces) return {{"tokens", ids}};
  Json tokens = Json::array();
  for (const int32_t id : ids) {
    tokens.push_back({{"id", id}, {"piece", piece_json(context.model().piece(id, true))}});
  }
  return {{"tokens", tokens}};
}

Json detokenize(const Json& json, const ApiContext& context) {
  const Fields body(json);
  (void)body.need("tokens");
  const int64_t n_vocab = context.model().tokenizer().n_vocab();
  std::vector<int32_t> ids;
  for (const Json& id : *body.array("tokens")) {
    if (!id.is_number_integer() || id < 0 || id >= n_vocab) {
      body.refuse("tokens", fmt::format("{} is no token's id, which are 0 to {}", short_text(id),
                                        n_vocab - 1));
    }
    ids.push_back(id.get<int32_t>());
  }
  TextStream text;
  std::string content = text.push(context.model().detokenize(ids));
  return {{"content", content + text.finish()}};
}

Json apply_template(const Json& body, const ApiContext& context) {
  return {{"prompt", read_chat_prompt(body, context).text}};
}

}  // namespace snapkv::server
