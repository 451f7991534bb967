// SPDX-License-Identifier: MIT
// POST /v1/chat/completions: OpenAI's chat completions, plain and as a stream.
#include "server/api/conversation.h"
#include "server/api/generation_fields.h"
#include "server/api/grammars.h"

namespace snapkv::server {
namespace {

constexpr const char* kFingerprint = "snapkv";

class ChatAnswers : public Answers {
 public:
  ChatAnswers(AnswerOptions answer_options, bool includes_usage)
      : Answers(std::move(answer_options)), includes_usage_(includes_usage) {}

  Json plain() const override {
    Json all = Json::array();
    for (size_t i = 0; i < choices().size(); ++i) {
      const Choice& choice = choices()[i];
      Json message = {{"role", "assistant"}, {"content", choice.content}, {"refusal", nullptr}};
      if (choice.content.empty() && !choice.calls.empty()) message["content"] = nullptr;
      if (!choice.reasoning.empty()) message["reasoning_content"] = choice.reasoning;
      for (const ToolCall& call : choice.calls) {
        message["tool_calls"].push_back(
            {{"id", call.id},
             {"type", "function"},
             {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
      }
      all.push_back(
          {{"index", i},
           {"message", message},
           {"logprobs", options().has_logprobs ? chat_logprobs_json(choice.tokens) : Json()},
           {"finish_reason", choice.finish_reason()}});
    }
    Json json = head("chat.completion");
    json["choices"] = all;
    json["usage"] = usage_json(times());
    add_reports(json);
    return json;
  }

 private:
  Json head(const char* object) const {
    return {{"id", options().id},
            {"object", object},
            {"created", options().created},
            {"model", options().model},
            {"system_fingerprint", kFingerprint}};
  }

  Json chunk(int choice, Json delta) const {
    Json json = head("chat.completion.chunk");
    json["choices"] = Json::array({{{"index", choice},
                                    {"delta", std::move(delta)},
                                    {"logprobs", nullptr},
                                    {"finish_reason", nullptr}}});
    // clients that asked for usage expect the field in every chunk
    if (includes_usage_) json["usage"] = nullptr;
    return json;
  }

  void on_begin() override {
    for (int i = 0; i < options().n; ++i) {
      send(event_text(chunk(i, {{"role", "assistant"}, {"content", ""}})));
    }
  }

  void on_progress(const PromptProgress& progress) override {
    Json json = chunk(0, Json::object());
    json["prompt_progress"] = progress_json(progress);
    send(event_text(json));
  }

  Json delta(int choice, const Piece& piece) const {
    switch (piece.kind) {
      case Piece::Kind::content:
        return {{"content", piece.text}};
      case Piece::Kind::reasoning:
        return {{"reasoning_content", piece.text}};
      case Piece::Kind::tool_begin: {
        const ToolCall& call =
            choices()[static_cast<size_t>(choice)].calls[static_cast<size_t>(piece.call)];
        return {{"tool_calls",
                 {{{"index", piece.call},
                   {"id", call.id},
                   {"type", "function"},
                   {"function", {{"name", call.name}, {"arguments", ""}}}}}}};
      }
      case Piece::Kind::tool_arguments:
        break;
    }
    return {{"tool_calls", {{{"index", piece.call}, {"function", {{"arguments", piece.text}}}}}}};
  }

  void on_part(int choice, const std::vector<Piece>& pieces,
               const std::vector<AnswerPart::Token>& tokens) override {
    std::vector<Json> chunks;
    for (const Piece& piece : pieces) chunks.push_back(chunk(choice, delta(choice, piece)));
    if (!tokens.empty()) {
      if (chunks.empty()) chunks.push_back(chunk(choice, {{"content", ""}}));
      chunks.front()["choices"][0]["logprobs"] = chat_logprobs_json(tokens);
    }
    for (const Json& each : chunks) send(event_text(each));
  }

  void on_end(int choice) override {
    Json json = chunk(choice, Json::object());
    json["choices"][0]["finish_reason"] = choices()[static_cast<size_t>(choice)].finish_reason();
    if (complete()) add_reports(json);
    send(event_text(json));
  }

  void on_complete() override {
    if (includes_usage_) {
      Json json = head("chat.completion.chunk");
      json["choices"] = Json::array();
      json["usage"] = usage_json(times());
      send(event_text(json));
    }
    send("data: [DONE]\n\n");
  }

  const bool includes_usage_;
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
  request.max_tokens = read_max_tokens(body, {"max_completion_tokens", "max_tokens"});
  request.stops = read_stops(body, "stop");
  request.top_logprobs = read_top_logprobs(body);
  request.grammar = read_grammar(body);
  Conversation conversation;
  conversation.messages = read_messages_field(body, "messages");
  conversation.tools = read_tools(body);
  conversation.template_variables = read_template_variables(body);
  AnswerSyntax syntax = prepare(conversation, context, request);

  const bool stream = body.boolean("stream").value_or(false);
  AnswerOptions options = answer_options(request, stream, context);
  options.syntax = std::move(syntax);
  bool includes_usage = false;
  if (const Json* given = body.object("stream_options")) {
    const Fields stream_options(*given, "stream_options.");
    if (!stream) body.refuse("stream_options", "it needs 'stream': true");
    includes_usage = stream_options.boolean("include_usage").value_or(false);
  }
  return {std::move(request), std::make_unique<ChatAnswers>(std::move(options), includes_usage)};
}

}  // namespace snapkv::server
