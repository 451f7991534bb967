// SPDX-License-Identifier: MIT
// POST /v1/responses: reads requests of OpenAI's Responses API as conversations.
// response_events.cpp writes the answers.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "server/api/conversation.h"
#include "server/api/custom_tools.h"
#include "server/api/generation_fields.h"
#include "server/api/grammars.h"
#include "server/api/kv_fields.h"
#include "server/api/response_events.h"
#include "server/api/response_tools.h"
#include "server/api/unsupported_fields.h"
#include "server/scheduler/request_plan.h"

namespace snapkv::server {
namespace {

void add_call(Json& messages, const Fields& item, const Json& arguments) {
  const std::string name = name_in(item.text("namespace").value_or(""), item.needed_text("name"));
  const Json call = {{"id", item.needed_text("call_id")},
                     {"type", "function"},
                     {"function", {{"name", name}, {"arguments", arguments}}}};
  // consecutive calls belong to one message
  if (messages.empty() || messages.back()["role"] != "assistant") {
    messages.push_back({{"role", "assistant"}, {"content", ""}});
  }
  messages.back()["tool_calls"].push_back(call);
}

void add_function_call(Json& messages, const Fields& item) {
  const std::string text = item.needed_text("arguments");
  const Json arguments = parse_held(text.empty() ? "{}" : text);
  add_call(messages, item, arguments.is_object() ? arguments : Json(text));
}

/// Empty where it is null.
std::string text_of(const Fields& item, const char* name) {
  const bool is_null = item.json().contains(name) && item.json()[name].is_null();
  return is_null ? "" : content_text(item, name, {"input_text", "output_text", "text", "refusal"});
}

void add_message(Json& messages, const Fields& item) {
  std::string role = item.needed_text("role");
  if (role == "developer") role = "system";
  if (role != "system" && role != "user" && role != "assistant") {
    item.refuse("role", "system, developer, user or assistant", item.need("role"));
  }
  messages.push_back({{"role", role}, {"content", text_of(item, "content")}});
}

void add_item(Json& messages, const Json& json, const std::string& path) {
  const Fields item(json, path);
  const std::string type = item.text("type").value_or("message");
  if (type == "message") {
    add_message(messages, item);
  } else if (type == "function_call") {
    add_function_call(messages, item);
  } else if (type == "custom_tool_call") {
    add_call(messages, item, custom_arguments(item.needed_text("input")));
  } else if (type == "function_call_output" || type == "custom_tool_call_output") {
    messages.push_back({{"role", "tool"},
                        {"tool_call_id", item.needed_text("call_id")},
                        {"content", text_of(item, "output")}});
  } else if (type != "reasoning" && type != "web_search_call") {
    // what the model thought before is not shown to it again, nor what others looked up
    item.refuse("type",
                "message, function_call, function_call_output, custom_tool_call, "
                "custom_tool_call_output or reasoning",
                Json(type));
  }
}

Json read_input(const Fields& body) {
  Json messages = Json::array();
  if (const auto instructions = body.text("instructions"); instructions && !instructions->empty()) {
    messages.push_back({{"role", "system"}, {"content", *instructions}});
  }
  const Json& input = body.need("input");
  if (input.is_string()) {
    messages.push_back({{"role", "user"}, {"content", input}});
    return messages;
  }
  if (!input.is_array()) body.refuse("input", "a string or an array of items", input);
  for (size_t i = 0; i < input.size(); ++i) {
    add_item(messages, input[i], fmt::format("input[{}].", i));
  }
  if (messages.empty()) body.refuse("input", "it is empty");
  return messages;
}

void refuse_what_needs_a_store(const Fields& body) {
  for (const char* name : {"previous_response_id", "conversation", "prompt"}) {
    if (body.has(name)) {
      body.refuse(name, "this server stores no responses: send the whole conversation as 'input'");
    }
  }
  if (body.boolean("background").value_or(false)) {
    body.refuse("background", "responses are written while the client waits");
  }
}

/// Checks OpenAI's limits: the response repeats the metadata in several events.
void check_metadata(const Fields& body) {
  constexpr size_t kMostPairs = 16, kMostKey = 64, kMostValue = 512;
  const Json* metadata = body.object("metadata");
  if (metadata == nullptr) return;
  if (metadata->size() > kMostPairs) {
    body.refuse("metadata",
                fmt::format("at most {} pairs are possible, not {}", kMostPairs, metadata->size()));
  }
  const auto n_characters = [](const std::string& text) {
    return static_cast<size_t>(std::count_if(text.begin(), text.end(),
                                             [](unsigned char c) { return (c & 0xc0) != 0x80; }));
  };
  for (const auto& [key, value] : metadata->items()) {
    if (n_characters(key) > kMostKey) {
      body.refuse("metadata", fmt::format("a key has at most {} characters, {} has {}", kMostKey,
                                          short_text(key), n_characters(key)));
    }
    if (!value.is_string() || n_characters(value.get_ref<const std::string&>()) > kMostValue) {
      body.refuse("metadata", fmt::format("{} must be a string of at most {} characters, not {}",
                                          short_text(key), kMostValue, short_text(value)));
    }
  }
}

/// Reads `top_logprobs`, or the entry of `include` that asks for the chosen tokens only.
int read_included_logprobs(const Fields& body) {
  const auto top = body.whole("top_logprobs", 0, kMostTopLogprobs);
  if (top && *top > 0) return static_cast<int>(*top);
  const Json* include = body.array("include");
  const bool wanted =
      include != nullptr &&
      std::find(include->begin(), include->end(), "message.output_text.logprobs") != include->end();
  return wanted ? 0 : -1;
}

Conversation read_conversation(const Fields& body, Tools tools) {
  Conversation conversation;
  conversation.messages = read_input(body);
  conversation.tools = std::move(tools);
  conversation.template_variables = read_template_variables(body);
  read_effort(body.inside("reasoning"), "effort", conversation.template_variables);
  conversation.splits_reasoning = read_splits_reasoning(body);
  return conversation;
}

}  // namespace

Exchange read_response(const Json& json, const ApiContext& context) {
  const Fields body(json);
  refuse_what_needs_a_store(body);
  check_metadata(body);
  Request request = read_request(body, context, "resp_");
  refuse_unsupported(body, Api::responses, request.warnings);
  if (request.n != 1) body.refuse("n", "a response has one answer");
  request.max_tokens = read_max_tokens(body, {"max_output_tokens"}, 1);
  request.stops = read_stops(body, "stop");
  request.top_logprobs = read_included_logprobs(body);
  const Fields text = body.inside("text");
  request.grammar = read_grammar(body, request.warnings, {{text, "format"}});
  ResponseTools tools = read_response_tools(body, request.warnings);
  read_call_form(tools.tools, body, context.options);
  AnswerSyntax syntax = prepare(read_conversation(body, std::move(tools.tools)), context, request);
  const bool stream = body.boolean("stream").value_or(false);
  if (tools.n_renamed > 0) {
    request.notes.push_back(
        fmt::format("tools: {} have their namespace in front of their name", tools.n_renamed));
  }
  note_unread(body, request);
  AnswerOptions options = answer_options(request, stream, context);
  options.syntax = std::move(syntax);
  return {std::move(request),
          make_response_answers(std::move(options), json, std::move(tools.names))};
}

int64_t count_response_tokens(const Json& json, const ApiContext& context) {
  const Fields body(json);
  refuse_what_needs_a_store(body);
  Request request;
  request.session = context.options.session;
  read_kv(body, context, request);
  Tools tools = read_response_tools(body, request.warnings).tools;
  (void)prepare(read_conversation(body, std::move(tools)), context, request);
  return prompt_tokens(request);
}

}  // namespace snapkv::server
