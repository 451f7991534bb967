// SPDX-License-Identifier: MIT
// POST /v1/messages: reads requests of Anthropic's Messages API as conversations.
// message_events.cpp writes the answers.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "server/api/conversation.h"
#include "server/api/generation_fields.h"
#include "server/api/grammars.h"
#include "server/api/kv_fields.h"
#include "server/api/message_blocks.h"
#include "server/api/message_events.h"
#include "server/api/unsupported_fields.h"
#include "server/scheduler/request_plan.h"

namespace snapkv::server {
namespace {

/// Tools that Anthropic's servers run, or that its models alone know, are left out.
void read_tools(const Fields& body, Tools& tools, std::vector<std::string>& warnings) {
  if (const Json* list = body.array("tools")) {
    for (size_t i = 0; i < list->size(); ++i) {
      const Fields tool((*list)[i], fmt::format("tools[{}].", i));
      if (const auto type = tool.text("type"); type && *type != "custom") {
        warnings.push_back(fmt::format("{}: {}: this server has no tools of its own",
                                       tool.name("type"), short_text(Json(*type))));
        continue;
      }
      (void)tool.need("input_schema");
      add_tool(tools, tool, "input_schema");
    }
  }
  const Json* choice = body.object("tool_choice");
  if (choice == nullptr) return;
  const Fields fields(*choice, "tool_choice.");
  const std::string type = fields.needed_text("type");
  tools.parallel = !fields.boolean("disable_parallel_tool_use").value_or(false);
  if (type == "tool") {
    choose_function(tools, body, fields.needed_text("name"));
    tools.parallel = false;  // nobody wants it twice
  } else if (type == "any") {
    if (tools.list.empty()) body.refuse("tool_choice", "\"any\" needs 'tools'");
    tools.choice = Tools::Choice::required;
  } else if (type == "none") {
    tools.choice = Tools::Choice::none;
  } else if (type != "auto") {
    fields.refuse("type", "auto, any, tool or none", Json(type));
  }
}

void add_system(Json& messages, const std::string& text) {
  if (text.empty()) return;
  const bool follows = !messages.empty() && messages.back()["role"] == "system";
  if (!follows) {
    messages.push_back({{"role", "system"}, {"content", text}});
    return;
  }
  const auto before = messages.back()["content"].get<std::string>();
  messages.back()["content"] = before + "\n\n" + text;
}

Conversation read_conversation(const Fields& body, Request& request) {
  Conversation conversation;
  if (body.has("system")) {
    add_system(conversation.messages, read_system(body, "system", request.notes));
  }
  (void)body.need("messages");
  const Json& list = *body.array("messages");
  if (list.empty()) body.refuse("messages", "there must be at least one message");
  for (size_t i = 0; i < list.size(); ++i) {
    const Fields message(list[i], fmt::format("messages[{}].", i));
    const std::string role = message.needed_text("role");
    if (role == "system") {
      add_system(conversation.messages, read_system(message, "content", request.notes));
    } else if (role == "user" || role == "assistant") {
      read_message_blocks(message, role, conversation.messages);
    } else {
      message.refuse("role", "user, assistant or system", Json(role));
    }
  }
  if (conversation.messages.empty()) body.refuse("messages", "they are empty");
  read_tools(body, conversation.tools, request.warnings);
  conversation.template_variables = read_template_variables(body);
  read_effort(body.inside("output_config"), "effort", conversation.template_variables);
  conversation.splits_reasoning = read_splits_reasoning(body);
  if (const Json* thinking = body.object("thinking")) {
    const std::string type = Fields(*thinking, "thinking.").needed_text("type");
    conversation.template_variables["enable_thinking"] = type != "disabled";
  }
  return conversation;
}

}  // namespace

Exchange read_messages(const Json& json, const ApiContext& context) {
  const Fields body(json);
  Request request = read_request(body, context, "msg_");
  refuse_unsupported(body, Api::messages, request.warnings);
  if (request.n != 1) body.refuse("n", "a message has one answer");
  (void)body.need("max_tokens");
  request.max_tokens = *body.whole("max_tokens", 1, kMostTokens);
  request.stops = read_stops(body, "stop_sequences");
  const Fields output = body.inside("output_config");
  request.grammar =
      read_grammar(body, request.warnings, {{output, "format"}, {body, "output_format"}});
  Conversation conversation = read_conversation(body, request);
  read_call_form(conversation.tools, body, context.options);
  AnswerSyntax syntax = prepare(conversation, context, request);
  const std::vector<MessageDocument> documents = message_documents(*body.array("messages"));
  const bool cites = std::any_of(documents.begin(), documents.end(),
                                 [](const MessageDocument& d) { return d.is_citable; });
  if (cites) request.citable.clear();  // kv_report's: documents come before messages
  for (int64_t i = 0; i < std::ssize(documents); ++i) {
    if (documents[i].is_citable) request.citable.push_back({i, documents[i].text});
  }
  const bool stream = body.boolean("stream").value_or(false);
  note_unread(body, request);
  AnswerOptions options = answer_options(request, stream, context);
  options.syntax = std::move(syntax);
  options.cites_documents = cites;
  for (const MessageDocument& each : documents) options.document_titles.push_back(each.title);
  if (const auto model = body.text("model")) options.model = *model;
  if (const auto text = text_after_cache_control(json)) {
    options.n_uncached = std::ssize(context.model().tokenize(*text, /*add_special=*/false));
  }
  return {std::move(request), make_message_answers(std::move(options))};
}

int64_t count_message_tokens(const Json& json, const ApiContext& context) {
  const Fields body(json);
  Request request;
  request.session = context.options.session;
  read_kv(body, context, request);
  (void)prepare(read_conversation(body, request), context, request);
  return prompt_tokens(request);
}

}  // namespace snapkv::server
