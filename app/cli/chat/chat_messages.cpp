// SPDX-License-Identifier: MIT
#include "cli/chat/chat_messages.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/write_file.h"
#include "cli/common/terminal.h"
#include "eval/common/json_field.h"

namespace snapkv::cli {
namespace {

using Json = ChatMessages::Json;

Json message(const std::string& role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

bool is_message(const Json& value) {
  return value.is_object() && value.contains("role") && value["role"].is_string() &&
         value.contains("content") && value["content"].is_string();
}

}  // namespace

void ChatMessages::add(const std::string& role, const std::string& content) {
  turns_.push_back(message(role, content));
}

std::optional<std::string> ChatMessages::last_user() const {
  for (auto turn = turns_.rbegin(); turn != turns_.rend(); ++turn) {
    if ((*turn)["role"] == "user") return (*turn)["content"].get<std::string>();
  }
  return std::nullopt;
}

std::optional<std::string> ChatMessages::take_last_user() {
  for (size_t i = turns_.size(); i > 0; --i) {
    if (turns_[i - 1]["role"] != "user") continue;
    std::string content = turns_[i - 1]["content"];
    turns_.erase(turns_.begin() + static_cast<std::ptrdiff_t>(i - 1), turns_.end());
    return content;
  }
  return std::nullopt;
}

Json ChatMessages::messages() const {
  Json all = Json::array();
  if (!system_.empty()) all.push_back(message("system", system_));
  for (const Json& turn : turns_) all.push_back(turn);
  return all;
}

Json ChatMessages::messages_with_last_answer(const std::string& content) const {
  Json all = messages();
  for (auto at = all.rbegin(); at != all.rend(); ++at) {
    if ((*at)["role"] != "assistant") continue;
    (*at)["content"] = content;
    break;
  }
  return all;
}

void ChatMessages::save(const std::string& path) const {
  write_file(path, Json{{"messages", messages()}}.dump(1) + "\n");
}

ChatMessages ChatMessages::load(const std::string& path) {
  return from_json(eval::parse_json(read_text(path)), path);
}

bool ChatMessages::is_saved(const std::string& path) {
  const Json parsed = eval::parse_json(read_text(path));
  return Json{{"messages", from_json(parsed, path).messages()}} == parsed;
}

ChatMessages ChatMessages::from_json(Json parsed, const std::string& path) {
  if (parsed.is_object() && parsed.contains("messages")) parsed = Json(parsed["messages"]);
  if (!parsed.is_array()) {
    fail(ErrorCode::kUsage, "{}: a JSON object with 'messages' is expected, or a list of messages",
         path);
  }
  ChatMessages conversation;
  for (size_t i = 0; i < parsed.size(); ++i) {
    if (!is_message(parsed[i])) {
      fail(ErrorCode::kUsage, "{}: message {} has no 'role' and 'content' that are texts", path, i);
    }
    if (i == 0 && parsed[i]["role"] == "system") {
      conversation.system_ = parsed[i]["content"];
    } else {
      conversation.turns_.push_back(parsed[i]);
    }
  }
  return conversation;
}

}  // namespace snapkv::cli
