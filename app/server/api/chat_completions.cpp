// SPDX-License-Identifier: MIT
// POST /v1/chat/completions: OpenAI's chat completions, plain and streamed.
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "server/api/completion_answers.h"
#include "server/api/conversation.h"
#include "server/api/custom_tools.h"
#include "server/api/generation_fields.h"
#include "server/api/grammars.h"
#include "server/api/unsupported_fields.h"

namespace snapkv::server {
namespace {

class ChatAnswers : public CompletionAnswers {
 public:
  /// `custom`: tools whose calls have a text.
  ChatAnswers(AnswerOptions answer_options, bool includes_usage, std::set<std::string> custom)
      : CompletionAnswers(std::move(answer_options), "chat.completion", "chat.completion.chunk",
                          includes_usage),
        custom_(std::move(custom)) {}

 private:
  Json whole_choice(size_t index) const override {
    const Choice& choice = choices()[index];
    Json message = {{"role", "assistant"}, {"content", choice.content}, {"refusal", nullptr}};
    if (choice.content.empty() && !choice.calls.empty()) message["content"] = nullptr;
    if (!choice.reasoning.empty()) message["reasoning_content"] = choice.reasoning;
    for (const ToolCall& call : choice.calls) {
      message["tool_calls"].push_back(call_json(call, call.arguments));
    }
    return {{"index", index},
            {"message", message},
            {"logprobs", options().has_logprobs ? chat_logprobs_json(choice.tokens) : Json()},
            {"finish_reason", finish_reason(index)}};
  }

  bool is_custom(const ToolCall& call) const { return custom_.contains(call.name); }

  /// A call that the model has written, with all its arguments or none.
  Json call_json(const ToolCall& call, const std::string& arguments) const {
    if (!is_custom(call)) {
      return {{"id", call.id},
              {"type", "function"},
              {"function", {{"name", call.name}, {"arguments", arguments}}}};
    }
    const std::string input = arguments.empty() ? "" : custom_input(arguments);
    return {
        {"id", call.id}, {"type", "custom"}, {"custom", {{"name", call.name}, {"input", input}}}};
  }

  const ToolCall& call_of(size_t choice, size_t call) const {
    return choices()[choice].calls[call];
  }

  Json empty_choice(size_t choice) const override { return changed_choice(choice, Json::object()); }

  static Json changed_choice(size_t choice, Json delta) {
    return {{"index", choice},
            {"delta", std::move(delta)},
            {"logprobs", nullptr},
            {"finish_reason", nullptr}};
  }

  void on_begin() override {
    for (size_t i = 0; i < options().n; ++i) {
      send_chunk(changed_choice(i, {{"role", "assistant"}, {"content", ""}}));
    }
  }

  Json delta(size_t choice, const Piece& piece) const {
    switch (piece.kind) {
      case Piece::Kind::content:
        return {{"content", piece.text}};
      case Piece::Kind::reasoning:
        return {{"reasoning_content", piece.text}};
      case Piece::Kind::tool_begin: {
        Json begun = call_json(call_of(choice, piece.call), "");
        begun["index"] = piece.call;
        return {{"tool_calls", Json::array({std::move(begun)})}};
      }
      case Piece::Kind::tool_arguments:
        break;
    }
    return {{"tool_calls", {{{"index", piece.call}, {"function", {{"arguments", piece.text}}}}}}};
  }

  void on_part(size_t choice, const std::vector<Piece>& pieces,
               const std::vector<AnswerPart::Token>& tokens) override {
    std::vector<Json> changes;
    for (const Piece& piece : pieces) {
      // the text is a part of the arguments, which is known for certain when they are complete
      const bool waits =
          piece.kind == Piece::Kind::tool_arguments && is_custom(call_of(choice, piece.call));
      if (!waits) changes.push_back(changed_choice(choice, delta(choice, piece)));
    }
    if (!tokens.empty()) {
      if (changes.empty()) changes.push_back(changed_choice(choice, {{"content", ""}}));
      changes.front()["logprobs"] = chat_logprobs_json(tokens);
    }
    for (Json& each : changes) send_chunk(std::move(each));
  }

  void on_end(size_t choice) override {
    for (size_t i = 0; i < choices()[choice].calls.size(); ++i) {
      const ToolCall& call = call_of(choice, i);
      if (!is_custom(call)) continue;
      const Json custom = {{"input", custom_input(call.arguments)}};
      send_chunk(changed_choice(choice, {{"tool_calls", {{{"index", i}, {"custom", custom}}}}}));
    }
    CompletionAnswers::on_end(choice);
  }

  const std::set<std::string> custom_;
};

int read_top_logprobs(const Fields& body) {
  const bool wanted = body.boolean("logprobs").value_or(false);
  const auto top = body.whole("top_logprobs", 0, kMostTopLogprobs);
  if (top && !wanted) body.refuse("top_logprobs", "it needs 'logprobs': true");
  return wanted ? static_cast<int>(top.value_or(0)) : -1;
}

void refuse_other_modes(const Fields& body) {
  if (const Json* modalities = body.array("modalities")) {
    for (const Json& each : *modalities) {
      if (each != "text") body.refuse("modalities", "[\"text\"]: answers are text", *modalities);
    }
  }
  if (body.has("audio")) body.refuse("audio", "answers are text only");
  if (body.has("web_search_options")) {
    body.refuse("web_search_options", "this server searches nothing");
  }
}

}  // namespace

Exchange read_chat_completion(const Json& json, const ApiContext& context) {
  const Fields body(json);
  refuse_other_modes(body);
  Request request = read_request(body, context, "chatcmpl-");
  refuse_unsupported(body, Api::chat, request.warnings);
  request.max_tokens =
      read_max_tokens(body, {"max_completion_tokens", "max_tokens", "n_predict"}, 1);
  request.stops = read_stops(body, "stop");
  request.top_logprobs = read_top_logprobs(body);
  request.grammar = read_grammar(body, request.warnings);
  Conversation conversation;
  conversation.messages = read_messages_field(body, "messages");
  conversation.tools = read_tools(body);
  read_call_form(conversation.tools, body, context.options);
  conversation.template_variables = read_template_variables(body);
  read_effort(body, "reasoning_effort", conversation.template_variables);
  conversation.splits_reasoning = read_splits_reasoning(body);
  conversation.begins_turn = read_begins_turn(body);
  std::set<std::string> custom = conversation.tools.custom;
  AnswerSyntax syntax = prepare(conversation, context, request);

  const bool stream = body.boolean("stream").value_or(false);
  const bool includes_usage = read_includes_usage(body, stream);
  note_unread(body, request);
  AnswerOptions options = answer_options(request, stream, context);
  options.syntax = std::move(syntax);
  return {std::move(request), std::make_unique<ChatAnswers>(std::move(options), includes_usage,
                                                            std::move(custom))};
}

}  // namespace snapkv::server
