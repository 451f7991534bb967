// SPDX-License-Identifier: MIT
#include "server/api/response_events.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "server/api/custom_tools.h"
#include "server/api/generation_fields.h"

namespace snapkv::server {
namespace {

/// An item of the output while it is written.
struct Item {
  enum class Type { reasoning, message, function_call, custom_call };
  Type type = Type::message;
  std::string id, text;  ///< text: for a call, its arguments
  std::string call_id;
  ResponseToolName tool = {};
  std::vector<AnswerPart::Token> tokens;
  bool cut = false;  // incomplete: the answer's limit was reached in it, or a call breaks off

  bool is_call() const { return type == Type::function_call || type == Type::custom_call; }
  Json part(const Json& logprobs) const {
    if (type == Type::reasoning) return {{"type", "reasoning_text"}, {"text", text}};
    return {{"type", "output_text"},
            {"annotations", Json::array()},
            {"logprobs", logprobs},
            {"text", text}};
  }
  Json json(bool complete) const {
    Json json = {{"id", id}};
    const char* status = !complete ? "in_progress" : cut ? "incomplete" : "completed";
    const Json content = complete ? Json::array({part(logprobs())}) : Json::array();
    switch (type) {
      case Type::reasoning:
        json["type"] = "reasoning";
        json["summary"] = Json::array();
        json["content"] = content;
        break;
      case Type::message:
        json["type"] = "message";
        json["status"] = status;
        json["role"] = "assistant";
        json["content"] = content;
        break;
      case Type::function_call:
        json["type"] = "function_call";
        json["status"] = status;
        json["call_id"] = call_id;
        json["name"] = tool.name;
        if (!tool.name_space.empty()) json["namespace"] = tool.name_space;
        json["arguments"] = text;
        break;
      case Type::custom_call:
        json["type"] = "custom_tool_call";
        json["status"] = status;
        json["call_id"] = call_id;
        json["name"] = tool.name;
        if (!tool.name_space.empty()) json["namespace"] = tool.name_space;
        json["input"] = complete ? custom_input(text) : "";
        break;
    }
    return json;
  }
  Json logprobs() const {
    return tokens.empty() ? Json::array() : chat_logprobs_json(tokens)["content"];
  }
};

class ResponseAnswers : public Answers {
 public:
  ResponseAnswers(AnswerOptions answer_options, const Json& request,
                  std::map<std::string, ResponseToolName> names)
      : Answers(std::move(answer_options)), names_(std::move(names)) {
    for (const char* name : {"instructions", "max_output_tokens", "temperature", "top_p", "tools",
                             "tool_choice", "text", "metadata", "parallel_tool_calls"}) {
      const auto found = request.find(name);
      settings_[name] = found != request.end() ? *found : Json(nullptr);
    }
    if (settings_["tools"].is_null()) settings_["tools"] = Json::array();
    if (settings_["tool_choice"].is_null()) settings_["tool_choice"] = "auto";
    if (settings_["parallel_tool_calls"].is_null()) settings_["parallel_tool_calls"] = true;
    if (settings_["text"].is_null()) settings_["text"] = {{"format", {{"type", "text"}}}};
  }

  Json plain() const override {
    std::vector<Item> items;
    const Choice& choice = choices().front();
    const auto add = [&](Item::Type type, const char* id_prefix, const std::string& text) -> Item& {
      Item& item = items.emplace_back();
      item.type = type;
      item.id = id_prefix + random_id();
      item.text = text;
      return item;
    };
    if (!choice.reasoning.empty()) add(Item::Type::reasoning, "rs_", choice.reasoning);
    if (!choice.content.empty() || choice.calls.empty()) {
      add(Item::Type::message, "msg_", choice.content).tokens = choice.text_tokens;
    }
    for (const ToolCall& call : choice.calls) {
      items.push_back(call_item(call));
      items.back().text = call.arguments;
    }
    items.back().cut = ends_cut(items.back());
    return response(items, true);
  }

  std::string failed(const ApiError& error) override {
    Json json = response(items_, false);
    json["status"] = "failed";
    const char* code = error.status < 500 ? "invalid_prompt" : "server_error";
    json["error"] = {{"code", error.code.empty() ? code : error.code}, {"message", error.what()}};
    emit("response.failed", {{"response", json}});
    return std::exchange(text_, {});
  }

  std::string ping() override {
    if (!items_.empty()) return Answers::ping();
    begin();
    emit("response.in_progress", {{"response", response({}, false)}});
    flush();
    return sent();
  }

 private:
  bool is_cut() const { return std::string(choices().front().finish_reason()) == "length"; }
  bool ends_cut(const Item& last) const {
    return is_cut() || (last.is_call() && !choices().front().ends_with_call());
  }

  Item call_item(const ToolCall& call) const {
    Item item;
    const auto known = names_.find(call.name);
    item.tool = known != names_.end() ? known->second : ResponseToolName{call.name};
    item.type = item.tool.is_custom ? Item::Type::custom_call : Item::Type::function_call;
    item.id = (item.tool.is_custom ? "ctc_" : "fc_") + random_id();
    item.call_id = call.id;
    return item;
  }

  Json response(const std::vector<Item>& items, bool ended) const {
    const bool cut = ended && is_cut();
    Json output = Json::array();
    for (const Item& item : items) output.push_back(item.json(true));
    Json json = {{"id", options().id},
                 {"object", "response"},
                 {"created_at", options().created},
                 {"status", !ended ? "in_progress"
                            : cut  ? "incomplete"
                                   : "completed"},
                 {"error", nullptr},
                 {"incomplete_details", nullptr},
                 {"model", options().model},
                 {"output", output},
                 {"previous_response_id", nullptr},
                 {"store", false},
                 {"usage", nullptr}};
    if (cut) json["incomplete_details"] = {{"reason", "max_output_tokens"}};
    for (const auto& [name, value] : settings_.items()) json[name] = value;
    if (!ended) return json;
    const AnswerTimes all = times();
    json["usage"] = {{"input_tokens", all.n_prompt},
                     {"input_tokens_details",
                      {{"cached_tokens", all.n_reused}, {"cache_write_tokens", all.n_stored}}},
                     {"output_tokens", all.n_generated},
                     {"output_tokens_details", answer_details_json(all)},
                     {"total_tokens", all.n_prompt + all.n_generated}};
    add_reports(json);
    return json;
  }

  void emit(const char* type, const Json& members) {
    Json json = {{"type", type}, {"sequence_number", n_events_++}};
    for (const auto& [name, value] : members.items()) json[name] = value;
    text_ += event_text(json, type);
  }
  void flush() { send(std::exchange(text_, {})); }

  int output_index() const { return static_cast<int>(items_.size()) - 1; }
  /// The members that identify the current item's text in events.
  Json place() const {
    return {{"item_id", items_.back().id}, {"output_index", output_index()}, {"content_index", 0}};
  }

  void open(Item item) {
    close();
    items_.push_back(std::move(item));
    open_ = true;
    emit("response.output_item.added",
         {{"output_index", output_index()}, {"item", items_.back().json(false)}});
    if (items_.back().is_call()) return;
    Json members = place();
    members["part"] = items_.back().part(Json::array());
    emit("response.content_part.added", members);
  }

  /// Returns the probabilities of the tokens since the last delta, including those whose text was
  /// held back.
  Json take_logprobs() {
    if (pending_.empty()) return Json::array();
    Json logprobs = chat_logprobs_json(pending_)["content"];
    auto& kept = items_.back().tokens;
    kept.insert(kept.end(), pending_.begin(), pending_.end());
    pending_.clear();
    return logprobs;
  }

  void add_text(const std::string& text) {
    Json members = place();
    members["delta"] = text;
    members["logprobs"] = take_logprobs();
    items_.back().text += text;
    emit("response.output_text.delta", members);
  }

  void close() {
    if (!open_) return;
    const Item& item = items_.back();
    if (item.type == Item::Type::message && !pending_.empty()) add_text("");
    open_ = false;
    if (item.type == Item::Type::function_call) {
      emit("response.function_call_arguments.done", {{"item_id", item.id},
                                                     {"output_index", output_index()},
                                                     {"name", item.tool.name},
                                                     {"arguments", item.text}});
    } else if (item.type == Item::Type::custom_call) {
      // the text is a part of the arguments, which is known for certain when they are complete
      const std::string input = custom_input(item.text);
      const Json where = {{"item_id", item.id}, {"output_index", output_index()}};
      Json delta = where, done = where;
      delta["delta"] = input;
      done["input"] = input;
      emit("response.custom_tool_call_input.delta", delta);
      emit("response.custom_tool_call_input.done", done);
    } else {
      Json members = place();
      members["text"] = item.text;
      const bool is_message = item.type == Item::Type::message;
      if (is_message) members["logprobs"] = item.logprobs();
      emit(is_message ? "response.output_text.done" : "response.reasoning_text.done", members);
      Json part = place();
      part["part"] = item.part(item.logprobs());
      emit("response.content_part.done", part);
    }
    emit("response.output_item.done",
         {{"output_index", output_index()}, {"item", item.json(true)}});
  }

  void on_begin() override {
    emit("response.created", {{"response", response({}, false)}});
    emit("response.in_progress", {{"response", response({}, false)}});
    flush();
  }

  void on_progress(const PromptProgress& progress) override {
    emit("response.in_progress",
         {{"response", response({}, false)}, {"prompt_progress", progress_json(progress)}});
    flush();
  }

  void need(Item::Type type, const char* id_prefix) {
    if (open_ && items_.back().type == type) return;
    Item item;
    item.type = type;
    item.id = id_prefix + random_id();
    open(std::move(item));
  }

  void on_part(size_t, const std::vector<Piece>& pieces,
               const std::vector<AnswerPart::Token>& tokens) override {
    pending_.insert(pending_.end(), tokens.begin(), tokens.end());
    for (const Piece& piece : pieces) {
      switch (piece.kind) {
        case Piece::Kind::content:
          need(Item::Type::message, "msg_");
          add_text(piece.text);
          break;
        case Piece::Kind::reasoning: {
          pending_.clear();
          need(Item::Type::reasoning, "rs_");
          items_.back().text += piece.text;
          Json members = place();
          members["delta"] = piece.text;
          emit("response.reasoning_text.delta", members);
          break;
        }
        case Piece::Kind::tool_begin: {
          pending_.clear();
          const ToolCall& call = choices().front().calls[piece.call];
          open(call_item(call));
          break;
        }
        case Piece::Kind::tool_arguments:
          pending_.clear();
          items_.back().text += piece.text;
          if (items_.back().type == Item::Type::custom_call) break;
          emit("response.function_call_arguments.delta", {{"item_id", items_.back().id},
                                                          {"output_index", output_index()},
                                                          {"delta", piece.text}});
          break;
      }
    }
    flush();
  }

  void on_end(size_t) override {
    if (items_.empty()) need(Item::Type::message, "msg_");
    items_.back().cut = ends_cut(items_.back());
    close();
    flush();
  }

  void on_complete() override {
    emit(is_cut() ? "response.incomplete" : "response.completed",
         {{"response", response(items_, true)}});
    flush();
  }

  const std::map<std::string, ResponseToolName> names_;
  Json settings_ = Json::object();
  std::vector<Item> items_;
  bool open_ = false;                       // the last item is still being written
  std::vector<AnswerPart::Token> pending_;  // since the last delta of a text
  int n_events_ = 0;
  std::string text_;
};

}  // namespace

std::unique_ptr<Answers> make_response_answers(AnswerOptions options, const Json& request,
                                               std::map<std::string, ResponseToolName> names) {
  return std::make_unique<ResponseAnswers>(std::move(options), request, std::move(names));
}

}  // namespace snapkv::server
