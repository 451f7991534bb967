// SPDX-License-Identifier: MIT
// /tokenize, /detokenize and /apply-template, in llama-server's shapes; the first two and
// /tokenizer_info in vLLM's too.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/api/endpoints.h"
#include "server/api/fields.h"
#include "snapkv/text_stream.h"

namespace snapkv::server {
namespace {

/// Returns JSON: a string, or an array of bytes if they are not valid text by themselves.
std::string piece_text(const std::string& bytes) {
  try {
    return Json(bytes).dump();
  } catch (const Json::exception&) {
    std::vector<int> list;
    for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
    return fmt::format("[{}]", fmt::join(list, ","));
  }
}

/// vLLM's shape: the text is `prompt`.
std::string tokenize_prompt(const Fields& body, const ApiContext& context) {
  const bool add_special = body.boolean("add_special_tokens").value_or(true);
  const std::vector<int32_t> ids =
      context.model().tokenize(body.needed_text("prompt"), add_special, /*parse_special=*/true);
  const int64_t n_ctx = context.options.session.n_ctx;
  return fmt::format(R"({{"count":{},"max_model_len":{},"tokens":[{}]}})", ids.size(),
                     n_ctx > 0 ? n_ctx : context.model().info().n_ctx_train, fmt::join(ids, ","));
}

}  // namespace

std::string tokenize(const Json& json, const ApiContext& context) {
  const Fields body(json);
  if (body.has("prompt")) return tokenize_prompt(body, context);
  const bool add_special = body.boolean("add_special").value_or(false);
  const bool parse_special = body.boolean("parse_special").value_or(true);
  const bool with_pieces = body.boolean("with_pieces").value_or(false);
  const std::vector<int32_t> ids =
      context.model().tokenize(body.needed_text("content"), add_special, parse_special);
  if (!with_pieces) return fmt::format("{{\"tokens\":[{}]}}", fmt::join(ids, ","));
  std::map<int32_t, std::string> pieces;  // the same pieces recur in a text
  std::string text = "{\"tokens\":[";
  for (size_t i = 0; i < ids.size(); ++i) {
    std::string& piece = pieces[ids[i]];
    if (piece.empty()) piece = piece_text(context.model().piece(ids[i], true));
    fmt::format_to(std::back_inserter(text), "{}{{\"id\":{},\"piece\":{}}}", i > 0 ? "," : "",
                   ids[i], piece);
  }
  return text + "]}";
}

Json detokenize(const Json& json, const ApiContext& context) {
  const Fields body(json);
  (void)body.need("tokens");
  const int64_t n_vocab = context.model().tokenizer().n_vocab();
  std::vector<int32_t> ids;
  for (const Json& id : *body.array("tokens")) {
    if (!id.is_number_integer() || id < 0 || id >= n_vocab) {
      body.refuse("tokens", fmt::format("{} is not a token id; they are 0 to {}", short_text(id),
                                        n_vocab - 1));
    }
    ids.push_back(id.get<int32_t>());
  }
  TextStream text;
  std::string content = text.push(context.model().detokenize(ids));
  content += text.finish();
  return {{"content", content}, {"prompt", content}};
}

Json tokenizer_info_json(const ApiContext& context) {
  const Tokenizer& tokenizer = context.model().tokenizer();
  const auto text_of = [&](int32_t id) {
    return id < 0 ? Json() : Json(tokenizer.piece(id, true));
  };
  const SpecialTokens special = tokenizer.special();
  const auto& chat_template = context.options.chat_template;
  return {{"tokenizer_class", "snapkv"},
          {"bos_token", text_of(special.bos)},
          {"eos_token", text_of(special.eos)},
          {"unk_token", text_of(special.unk)},
          {"pad_token", text_of(special.pad)},
          {"chat_template", chat_template ? Json(chat_template->source()) : Json()}};
}

Json apply_template(const Json& body, const ApiContext& context) {
  return {{"prompt", read_chat_prompt(body, context).text}};
}

}  // namespace snapkv::server
