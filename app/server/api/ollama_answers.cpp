// SPDX-License-Identifier: MIT
#include "server/api/ollama_answers.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace snapkv::server {
namespace {

int64_t nanoseconds(double seconds) { return static_cast<int64_t>(seconds * 1e9); }

Json head(const std::string& model, int64_t created) {
  return {{"model", model}, {"created_at", time_text(created)}};
}

class OllamaAnswers : public Answers {
 public:
  OllamaAnswers(AnswerOptions answer_options, OllamaApi api)
      : Answers(std::move(answer_options)), api_(api) {}

  Json plain() const override {
    const Choice& choice = choices().front();
    Json json = part_json(choice.content, choice.reasoning, calls_json(choice), choice.tokens);
    end(json);
    return json;
  }

  std::string failed(const ApiError& error) override { return line(ollama_error(error)); }
  std::string ping() override { return line(part_json("", "", Json::array(), {})); }
  const char* stream_type() const override { return "application/x-ndjson"; }

 private:
  static std::string line(const Json& json) { return to_text(json) + "\n"; }

  /// The calls that the client can make.
  static Json calls_json(const Choice& choice) {
    Json all = Json::array();
    for (const ToolCall& call : choice.calls) {
      if (!call.complete()) continue;
      all.push_back({{"id", call.id},
                     {"function",
                      {{"index", all.size()},
                       {"name", call.name},
                       {"arguments", parse_held(call.arguments)}}}});
    }
    return all;
  }

  Json part_json(const std::string& text, const std::string& reasoning, const Json& calls,
                 const std::vector<AnswerPart::Token>& tokens) const {
    Json json = head(options().model, options().created);
    Json message = {{"role", "assistant"}, {"content", text}};
    if (api_ == OllamaApi::generate) {
      json["response"] = text;
      if (!reasoning.empty()) json["thinking"] = reasoning;
    } else {
      if (!reasoning.empty()) message["thinking"] = reasoning;
      if (!calls.empty()) message["tool_calls"] = calls;
      json["message"] = message;
    }
    if (!tokens.empty()) json["logprobs"] = chat_logprobs_json(tokens)["content"];
    json["done"] = false;
    return json;
  }

  void end(Json& json) const {
    const AnswerTimes all = times();
    json["done"] = true;
    const bool is_cut = choices().front().finish_reason() == std::string_view("length");
    json["done_reason"] = is_cut ? "length" : "stop";
    json["total_duration"] = nanoseconds(all.prompt_seconds + all.answer_seconds);
    json["load_duration"] = 0;
    json["prompt_eval_count"] = all.n_prompt;
    json["prompt_eval_duration"] = nanoseconds(all.prompt_seconds);
    json["eval_count"] = all.n_generated;
    json["eval_duration"] = nanoseconds(all.answer_seconds);
    add_reports(json);
  }

  void on_progress(const PromptProgress&) override {}
  void on_begin() override {}
  void on_part(size_t, const std::vector<Piece>& pieces,
               const std::vector<AnswerPart::Token>& tokens) override {
    std::string text, reasoning;
    for (const Piece& piece : pieces) {
      if (piece.kind == Piece::Kind::content) text += piece.text;
      if (piece.kind == Piece::Kind::reasoning) reasoning += piece.text;
    }
    if (text.empty() && reasoning.empty() && tokens.empty()) return;
    send(line(part_json(text, reasoning, Json::array(), tokens)));
  }
  // calls are whole
  void on_end(size_t choice) override {
    const Json calls = calls_json(choices()[choice]);
    if (!calls.empty()) send(line(part_json("", "", calls, {})));
  }
  void on_complete() override {
    Json json = part_json("", "", Json::array(), {});
    end(json);
    send(line(json));
  }

  const OllamaApi api_;
};

}  // namespace

std::unique_ptr<Answers> make_ollama_answers(AnswerOptions options, OllamaApi api) {
  return std::make_unique<OllamaAnswers>(std::move(options), api);
}

Json ollama_empty_answer(const std::string& model, int64_t created, OllamaApi api, bool unloads) {
  Json json = head(model, created);
  if (api == OllamaApi::generate) {
    json["response"] = "";
  } else {
    json["message"] = {{"role", "assistant"}, {"content", ""}};
  }
  json["done"] = true;
  json["done_reason"] = unloads ? "unload" : "load";
  return json;
}

}  // namespace snapkv::server
