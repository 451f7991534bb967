// SPDX-License-Identifier: MIT
// POST /v1/responses: reads requests of OpenAI's Responses API as conversations.
// response_events.cpp writes the answers.
#include <fmt/format.h>

#include <algorithm>

#include "server/api/conversation.h"
#include "server/api/generation_fields.h"
#include "server/api/grammars.h"
#include "server/api/response_events.h"
#include "server/api/unsupported_fields.h"

namespace snapkv::server {
namespace {

void add_call(Json& messages, const Fields& item) {
  Json arguments = parse_held(item.needed_text("arguments"));
  if (!arguments.is_object()) arguments = item.needed_text("arguments");
  const Json call = {{"id", item.needed_text("call_id")},
                     {"type", "function"},
                     {"function", {{"name", item.needed_text("name")}, {"arguments", arguments}}}};
  // consecutive calls belong to one message
  if (messages.empty() || messages.back()["role"] != "assistant") {
    messages.push_back({{"role", "assistant"}, {"content", ""}});
  }
  messages.back()["tool_calls"].push_back(call);
}

void add_message(Json& messages, const Fields& item) {
  std::string role = item.needed_text("role");
  if (role == "developer") role = "system";
  if (role != "system" && role != "user" && role != "assistant") {
    item.refuse("role", "system, developer, user or assistant", item.need("role"));
  }
  messages.push_back({{"role", role},
                      {"content", content_text(item, "content",
                                               {"input_text", "output_text", "text", "refusal"})}});
}

void add_item(Json& messages, const Json& json, const std::string& path) {
  const Fields item(json, path);
  const std::string type = item.text("type").value_or("message");
  if (type == "message") {
    add_message(messages, item);
  } else if (type == "function_call") {
    add_call(messages, item);
  } else if (type == "function_call_output") {
    messages.push_back(
        {{"role", "tool"},
         {"tool_call_id", item.needed_text("call_id")},
         {"content", content_text(item, "output", {"input_text", "output_text", "text"})}});
  } else if (type != "reasoning") {  // the model does not see its earlier reasoning again
    item.refuse("type", "message, function_call, function_call_output or reasoning", Json(type));
  }
}

Json read_input(const Fields& body) {
  Json messages = Json::array();
  if (const auto instructions = body.text("instructions")) {
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

Tools read_response_tools(const Fields& body) {
  Tools tools;
  if (const Json* list = body.array("tools")) {
    for (size_t i = 0; i < list->size(); ++i) {
      const Fields tool((*list)[i], fmt::format("tools[{}].", i));
      if (tool.needed_text("type") != "function") {
        tool.refuse("type", "\"function\", the one kind of tool that is supported",
                    tool.need("type"));
      }
      add_tool(tools, tool, "parameters");
    }
  }
  tools.parallel = body.boolean("parallel_tool_calls").value_or(true);
  read_tool_choice(tools, body, [](const Fields& choice) { return choice.needed_text("name"); });
  return tools;
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
int read_response_logprobs(const Fields& body) {
  const auto top = body.whole("top_logprobs", 0, kMostTopLogprobs);
  if (top && *top > 0) return static_cast<int>(*top);
  const Json* include = body.array("include");
  const bool wanted =
      include != nullptr &&
      std::find(include->begin(), include->end(), "message.output_text.logprobs") != include->end();
  return wanted ? 0 : -1;
}

}  // namespace

Exchange read_response(const Json& json, const ApiContext& context) {
  const Fields body(json);
  refuse_what_needs_a_store(body);
  refuse_unsupported(body, Api::responses);
  check_metadata(body);
  Request request = read_request(body, context, "resp_");
  if (request.n != 1) body.refuse("n", "a response has one answer");
  request.max_tokens = read_max_tokens(body, {"max_output_tokens"}, 1);
  request.stops = read_stops(body, "stop");
  request.top_logprobs = read_response_logprobs(body);
  const Fields text = body.inside("text");
  request.grammar = read_grammar(body, {{text, "format"}});
  Conversation conversation;
  conversation.messages = read_input(body);
  conversation.tools = read_response_tools(body);
  conversation.template_variables = read_template_variables(body);
  read_effort(body.inside("reasoning"), "effort", conversation.template_variables);
  conversation.splits_reasoning = read_splits_reasoning(body);
  AnswerSyntax syntax = prepare(conversation, context, request);
  AnswerOptions options = answer_options(request, body.boolean("stream").value_or(false), context);
  options.syntax = std::move(syntax);
  return {std::move(request), make_response_answers(std::move(options), json)};
}

}  // namespace snapkv::server
