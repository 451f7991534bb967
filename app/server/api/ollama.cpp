// SPDX-License-Identifier: MIT
// POST /api/chat and /api/generate: Ollama's API, read with the fields of OpenAI's.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "server/api/completion_prompts.h"
#include "server/api/conversation.h"
#include "server/api/endpoints.h"
#include "server/api/generation_fields.h"
#include "server/api/grammars.h"
#include "server/api/ollama_answers.h"
#include "server/api/unsupported_fields.h"

namespace snapkv::server {
namespace {

/// `format`: "json", a schema, or nothing.
Json response_format(const Fields& body) {
  const Json* format = body.find("format");
  if (format == nullptr || *format == "") return nullptr;
  if (*format == "json") return {{"type", "json_object"}};
  if (!format->is_object()) body.refuse("format", "\"json\" or a schema", *format);
  return {{"type", "json_schema"}, {"schema", *format}};
}

/// `think`: a boolean, or how much.
void read_think(const Fields& body, Json& variables) {
  const Json* think = body.find("think");
  if (think == nullptr) return;
  if (think->is_string()) {
    read_effort(body, "think", variables);
  } else {
    variables["enable_thinking"] = *body.boolean("think");
  }
}

/// The members of `options` beside those of the body, by OpenAI's names.
Json with_options(const Json& json) {
  Json all = json;
  const Fields body(json);
  const Fields options = body.inside("options");
  for (const auto& [name, value] : options.json().items()) {
    if (!all.contains(name)) all[name] = value;
  }
  if (const auto n = options.whole("num_predict", -2, kMostTokens)) {
    all["max_tokens"] = std::max<int64_t>(*n, -1);  // -2: as many as the context holds
  }
  all["response_format"] = response_format(body);
  all.erase("format");
  return all;
}

std::string model_of(const Fields& body, const ApiContext& context) {
  return body.text("model").value_or(context.options.model_name);
}

Request read_ollama_request(const Fields& body, const ApiContext& context) {
  Request request = read_request(body, context, "ollama-");
  refuse_unsupported(body, Api::completions, request.warnings);
  if (request.n != 1) body.refuse("n", "there is one answer");
  request.max_tokens = read_max_tokens(body, {"max_tokens"}, 1);
  request.stops = read_stops(body, "stop");
  if (body.boolean("logprobs").value_or(false)) {
    request.top_logprobs =
        static_cast<int>(body.whole("top_logprobs", 0, kMostTopLogprobs).value_or(0));
  }
  request.grammar = read_grammar(body, request.warnings);
  return request;
}

void refuse_images(const Fields& owner) {
  const Json* images = owner.array("images");
  if (images != nullptr && !images->empty()) {
    owner.refuse("images", "this model reads text only");
  }
}

Json read_ollama_messages(const Fields& body) {
  (void)body.need("messages");
  Json messages = *body.array("messages");
  for (size_t i = 0; i < messages.size(); ++i) {
    const Fields message(messages[i], fmt::format("messages[{}].", i));
    refuse_images(message);
    for (const auto& [name, other] :
         {std::pair("thinking", "reasoning_content"), std::pair("tool_name", "name")}) {
      if (const auto text = message.text(name)) messages[i][other] = *text;
    }
  }
  const Json with = {{"messages", std::move(messages)}};
  return read_messages_field(Fields(with), "messages");
}

Exchange ollama_exchange(Request request, AnswerSyntax syntax, const Fields& body,
                         const ApiContext& context, OllamaApi api) {
  const bool stream = body.boolean("stream").value_or(true);
  std::string model = model_of(body, context);
  note_unread(body, request);
  AnswerOptions options = answer_options(request, stream, context);
  options.model = std::move(model);
  options.syntax = std::move(syntax);
  return {std::move(request), make_ollama_answers(std::move(options), api)};
}

/// The prompt as it is: there is no template, or none is wanted, or it is filled in.
Exchange read_raw(const Fields& body, const ApiContext& context) {
  Request request = read_ollama_request(body, context);
  request.prompt =
      std::move(read_completion_prompts(body, context, request.document == nullptr)[0].prompt);
  return ollama_exchange(std::move(request), {}, body, context, OllamaApi::generate);
}

}  // namespace

Exchange read_ollama_chat(const Json& json, const ApiContext& context) {
  const Json all = with_options(json);
  const Fields body(all);
  Request request = read_ollama_request(body, context);
  Conversation conversation;
  conversation.messages = read_ollama_messages(body);
  conversation.tools = read_tools(body);
  read_call_form(conversation.tools, body, context.options);
  if (!conversation.tools.custom.empty()) body.refuse("tools", "Ollama has functions only");
  read_think(body, conversation.template_variables);
  AnswerSyntax syntax = prepare(conversation, context, request);
  return ollama_exchange(std::move(request), std::move(syntax), body, context, OllamaApi::chat);
}

Exchange read_ollama_generate(const Json& json, const ApiContext& context) {
  const Json all = with_options(json);
  const Fields body(all);
  refuse_images(body);
  if (body.text("template").value_or("") != "") {
    body.refuse("template", "the template is the model's, or --chat-template's");
  }
  const bool is_raw = body.boolean("raw").value_or(false) || !context.options.chat_template ||
                      body.text("suffix").value_or("") != "";
  if (is_raw) return read_raw(body, context);
  Request request = read_ollama_request(body, context);
  Conversation conversation;
  if (const auto system = body.text("system"); system && !system->empty()) {
    conversation.messages.push_back({{"role", "system"}, {"content", *system}});
  }
  conversation.messages.push_back({{"role", "user"}, {"content", body.needed_text("prompt")}});
  read_think(body, conversation.template_variables);
  AnswerSyntax syntax = prepare(conversation, context, request);
  return ollama_exchange(std::move(request), std::move(syntax), body, context, OllamaApi::generate);
}

std::optional<Json> ollama_load_answer(const Json& json, const ApiContext& context, bool chats) {
  const Fields body(json);
  const Json* content = body.find(chats ? "messages" : "prompt");
  const bool is_empty =
      content == nullptr || (content->is_array() && content->empty()) || *content == "";
  if (!is_empty || body.has("suffix")) return std::nullopt;
  const Json* keep_alive = body.find("keep_alive");
  const bool unloads = keep_alive != nullptr && (*keep_alive == 0 || *keep_alive == "0");
  return ollama_empty_answer(model_of(body, context), context.options.created,
                             chats ? OllamaApi::chat : OllamaApi::generate, unloads);
}

}  // namespace snapkv::server
