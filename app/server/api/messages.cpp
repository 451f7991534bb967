// SPDX-License-Identifier: MIT
// POST /v1/messages: reads requests of Anthropic's Messages API as conversations.
// message_events.cpp writes the answers.
#include <fmt/format.h>

#include "server/api/conversation.h"
#include "server/api/generation_fields.h"
#include "server/api/grammars.h"
#include "server/api/kv_fields.h"
#include "server/api/message_events.h"
#include "server/api/unsupported_fields.h"
#include "server/request_plan.h"

namespace snapkv::server {
namespace {

/// Turns the content of a message into messages for the template; tool results become separate
/// messages in front of it.
class MessageReader {
 public:
  MessageReader(std::string role, Json& messages) : role_(std::move(role)), messages_(messages) {}

  void read(const Fields& message) {
    const Json& content = message.need("content");
    if (content.is_string()) {
      text_ = content.get<std::string>();
    } else if (content.is_array()) {
      for (size_t i = 0; i < content.size(); ++i) {
        add_block(Fields(content[i], fmt::format("{}[{}].", message.name("content"), i)));
      }
    } else {
      message.refuse("content", "a string or an array of blocks", content);
    }
    if (text_.empty() && calls_.empty() && has_results_) return;
    Json made = {{"role", role_}, {"content", text_}};
    if (!calls_.empty()) made["tool_calls"] = calls_;
    messages_.push_back(made);
  }

 private:
  void add_block(const Fields& block) {
    const std::string type = block.needed_text("type");
    if (type == "text") {
      text_ += block.needed_text("text");
    } else if (type == "tool_use" && role_ == "assistant") {
      const Json* input = block.object("input");
      calls_.push_back({{"id", block.needed_text("id")},
                        {"type", "function"},
                        {"function",
                         {{"name", block.needed_text("name")},
                          {"arguments", input != nullptr ? *input : Json::object()}}}});
    } else if (type == "tool_result" && role_ == "user") {
      has_results_ = true;
      messages_.push_back(
          {{"role", "tool"},
           {"tool_call_id", block.needed_text("tool_use_id")},
           {"content", block.has("content") ? content_text(block, "content", {"text"}) : ""}});
    } else if (type != "thinking" && type != "redacted_thinking") {
      // the model does not see its earlier reasoning again
      block.refuse("type",
                   "this model reads text only: blocks of type text, tool_use (of the "
                   "assistant), tool_result (of the user) and thinking are possible, not " +
                       short_text(Json(type)));
    }
  }

  const std::string role_;
  Json& messages_;
  std::string text_;
  Json calls_ = Json::array();
  bool has_results_ = false;
};

void read_tools(const Fields& body, Tools& tools) {
  if (const Json* list = body.array("tools")) {
    for (size_t i = 0; i < list->size(); ++i) {
      const Fields tool((*list)[i], fmt::format("tools[{}].", i));
      if (const auto type = tool.text("type"); type && *type != "custom") {
        tool.refuse("type", "\"custom\": this server has no tools of its own", Json(*type));
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
  } else if (type == "any") {
    if (tools.list.empty()) body.refuse("tool_choice", "\"any\" needs 'tools'");
    tools.choice = Tools::Choice::required;
  } else if (type == "none") {
    tools.choice = Tools::Choice::none;
  } else if (type != "auto") {
    fields.refuse("type", "auto, any, tool or none", Json(type));
  }
}

Conversation read_conversation(const Fields& body) {
  Conversation conversation;
  if (body.has("system")) {
    conversation.messages.push_back(
        {{"role", "system"}, {"content", content_text(body, "system", {"text"})}});
  }
  (void)body.need("messages");
  const Json& list = *body.array("messages");
  if (list.empty()) body.refuse("messages", "there must be at least one message");
  for (size_t i = 0; i < list.size(); ++i) {
    const Fields message(list[i], fmt::format("messages[{}].", i));
    const std::string role = message.needed_text("role");
    if (role != "user" && role != "assistant") {
      message.refuse("role", "user or assistant", Json(role));
    }
    MessageReader(role, conversation.messages).read(message);
  }
  if (conversation.messages.back()["role"] == "assistant") {
    body.refuse("messages",
                "the last one must be the user's: an answer that has begun can't be "
                "continued here");
  }
  read_tools(body, conversation.tools);
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
  refuse_unsupported(body, Api::messages);
  Request request = read_request(body, context, "msg_");
  if (request.n != 1) body.refuse("n", "a message has one answer");
  (void)body.need("max_tokens");
  request.max_tokens = *body.whole("max_tokens", 1, kMostTokens);
  request.stops = read_stops(body, "stop_sequences");
  const Fields output = body.inside("output_config");
  request.grammar = read_grammar(body, {{output, "format"}, {body, "output_format"}});
  AnswerSyntax syntax = prepare(read_conversation(body), context, request);
  AnswerOptions options = answer_options(request, body.boolean("stream").value_or(false), context);
  options.syntax = std::move(syntax);
  if (const auto model = body.text("model")) options.model = *model;
  return {std::move(request), make_message_answers(std::move(options))};
}

int64_t count_message_tokens(const Json& json, const ApiContext& context) {
  const Fields body(json);
  Request request;
  request.session = context.options.session;
  read_kv(body, context, request);
  (void)prepare(read_conversation(body), context, request);
  return prompt_tokens(request);
}

}  // namespace snapkv::server
