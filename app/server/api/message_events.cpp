// SPDX-License-Identifier: MIT
#include "server/api/message_events.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace snapkv::server {
namespace {

class MessageAnswers : public Answers {
 public:
  using Answers::Answers;

  Json plain() const override {
    const Choice& choice = choices().front();
    Json content = Json::array();
    if (!choice.reasoning.empty()) {
      content.push_back({{"type", "thinking"}, {"thinking", choice.reasoning}, {"signature", ""}});
    }
    if (!choice.content.empty()) {
      content.push_back({{"type", "text"}, {"text", choice.content}});
      if (options().cites_documents) content.back()["citations"] = citations();
    }
    for (const ToolCall& call : choice.calls) content.push_back(call_block(call));
    Json json = message(content);
    json["stop_reason"] = stop_reason();
    json["stop_sequence"] = stop_sequence();
    json["usage"] = usage();
    add_reports(json);
    return json;
  }

  std::string failed(const ApiError& error) override {
    return event_text(anthropic_error(error), "error");
  }
  std::string ping() override {
    emit("ping", Json::object());
    if (!begun_) {
      begin_message();
    } else if (n_blocks_ == 0) {
      const Json delta = {{"stop_reason", nullptr}, {"stop_sequence", nullptr}};
      emit("message_delta", {{"delta", delta}, {"usage", usage()}});
    }
    return sent();
  }

 private:
  Json citations() const {
    Json all = Json::array();
    for (const CitedPassage& passage : choices().front().end->sources) {
      const auto& title = options().document_titles[static_cast<size_t>(passage.index)];
      all.push_back({{"type", "char_location"},
                     {"cited_text", passage.text},
                     {"document_index", passage.index},
                     {"document_title", title ? Json(*title) : Json(nullptr)},
                     {"start_char_index", passage.begin},
                     {"end_char_index", passage.end},
                     {"file_id", nullptr}});
    }
    return all;
  }

  /// `input` must be an object, so incomplete arguments can only be shown as the model's text.
  static Json call_block(const ToolCall& call) {
    if (call.complete()) {
      return {{"type", "tool_use"},
              {"id", call.id},
              {"name", call.name},
              {"input", parse_held(call.arguments)}};
    }
    return {
        {"type", "text"},
        {"text", "{\"name\": " + to_text(Json(call.name)) + ", \"arguments\": " + call.arguments}};
  }

  Json message(const Json& content) const {
    return {{"id", options().id},       {"type", "message"},
            {"role", "assistant"},      {"model", options().model},
            {"content", content},       {"stop_reason", nullptr},
            {"stop_sequence", nullptr}, {"usage", {{"input_tokens", 0}, {"output_tokens", 0}}}};
  }

  const char* stop_reason() const {
    const Choice& choice = choices().front();
    if (choice.end->reason == FinishReason::length) return "max_tokens";
    if (choice.ends_with_call()) return "tool_use";
    return choice.end->stop.empty() ? "end_turn" : "stop_sequence";
  }
  Json stop_sequence() const {
    const bool is_reason = stop_reason() == std::string_view("stop_sequence");
    return is_reason ? Json(choices().front().end->stop) : Json(nullptr);
  }
  Json usage() const {
    const AnswerTimes all = times();
    const int64_t n_new = all.n_prompt - all.n_reused;
    // what is stored up to the last cache_control; elsewhere nobody asked for it
    const int64_t n_after = options().n_uncached.value_or(n_new);
    const int64_t n_created = std::clamp<int64_t>(n_new - n_after, 0, all.n_stored);
    return {{"input_tokens", n_new - n_created},
            {"cache_creation_input_tokens", n_created},
            {"cache_read_input_tokens", all.n_reused},
            {"cache_creation",
             {{"ephemeral_5m_input_tokens", n_created}, {"ephemeral_1h_input_tokens", 0}}},
            {"output_tokens", all.n_generated},
            {"service_tier", "standard"}};
  }

  void emit(const char* type, const Json& members) {
    Json json = {{"type", type}};
    for (const auto& [name, value] : members.items()) json[name] = value;
    send(event_text(json, type));
  }

  // message_start has the length of the prompt, so the message begins when that is known, or with
  // the first ping; then message_delta corrects it.
  void on_begin() override {}
  void begin_message() {
    if (std::exchange(begun_, true)) return;
    Json json = message(Json::array());
    json["usage"] = usage();
    emit("message_start", {{"message", json}});
  }

  void on_progress(const PromptProgress& progress) override {
    emit("ping", {{"prompt_progress", progress_json(progress)}});
  }

  void close() {
    if (!std::exchange(open_, nullptr)) return;
    emit("content_block_stop", {{"index", n_blocks_ - 1}});
  }
  void open(const char* type, const Json& block) {
    close();
    open_ = type;
    emit("content_block_start", {{"index", n_blocks_++}, {"content_block", block}});
  }
  void need(const char* type, const Json& block) {
    if (open_ == nullptr || std::string_view(open_) != type) open(type, block);
  }
  void add_delta(const Json& delta) {
    emit("content_block_delta", {{"index", n_blocks_ - 1}, {"delta", delta}});
  }

  void on_part(size_t, const std::vector<Piece>& pieces,
               const std::vector<AnswerPart::Token>&) override {
    begin_message();
    for (const Piece& piece : pieces) {
      switch (piece.kind) {
        case Piece::Kind::content:
          need("text", {{"type", "text"}, {"text", ""}});
          add_delta({{"type", "text_delta"}, {"text", piece.text}});
          break;
        case Piece::Kind::reasoning:
          need("thinking", {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
          add_delta({{"type", "thinking_delta"}, {"thinking", piece.text}});
          break;
        case Piece::Kind::tool_begin: {
          const ToolCall& call = choices().front().calls[piece.call];
          open("tool_use", {{"type", "tool_use"},
                            {"id", call.id},
                            {"name", call.name},
                            {"input", Json::object()}});
          break;
        }
        case Piece::Kind::tool_arguments:
          add_delta({{"type", "input_json_delta"}, {"partial_json", piece.text}});
          break;
      }
    }
  }

  void on_end(size_t) override {
    begin_message();
    if (options().cites_documents && open_ != nullptr && open_ == std::string_view("text")) {
      for (const Json& citation : citations()) {
        add_delta({{"type", "citations_delta"}, {"citation", citation}});
      }
    }
    close();
  }

  void on_complete() override {
    Json members = {{"delta", {{"stop_reason", stop_reason()}, {"stop_sequence", stop_sequence()}}},
                    {"usage", usage()}};
    add_reports(members);
    emit("message_delta", members);
    emit("message_stop", Json::object());
  }

  bool begun_ = false;
  const char* open_ = nullptr;  // type of the block that is being written
  int n_blocks_ = 0;
};

}  // namespace

std::unique_ptr<Answers> make_message_answers(AnswerOptions options) {
  return std::make_unique<MessageAnswers>(std::move(options));
}

}  // namespace snapkv::server
