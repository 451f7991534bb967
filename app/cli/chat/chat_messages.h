// SPDX-License-Identifier: MIT
// ChatMessages: the messages of a chat, in the JSON of OpenAI and transformers.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace snapkv::cli {

class ChatMessages {
 public:
  using Json = nlohmann::ordered_json;

  /// The system message; empty: none.
  const std::string& system() const { return system_; }
  void set_system(std::string text) { system_ = std::move(text); }

  /// Messages after the system message: user, assistant, user ...
  const Json& turns() const { return turns_; }
  bool empty() const { return turns_.empty(); }
  void add(const std::string& role, const std::string& content);
  /// Removes the last message.
  void pop() { turns_.erase(turns_.size() - 1); }
  /// The content of the last user message; nothing when there is none.
  std::optional<std::string> last_user() const;
  /// Removes the last user message and all after it; returns its content, or nothing if there is
  /// none.
  std::optional<std::string> take_last_user();
  void clear() { turns_ = Json::array(); }

  /// All messages, the system message first.
  Json messages() const;
  /// messages(), with the content of the last assistant message replaced.
  Json messages_with_last_answer(const std::string& content) const;

  /// Writes {"messages": [...]}, which apply-template can read. Throws kRuntime when the file can't
  /// be written.
  void save(const std::string& path) const;
  /// Reads what save() wrote, or a list of messages; contents must be text. Throws kRuntime,
  /// kUsage.
  static ChatMessages load(const std::string& path);
  /// Whether the file holds exactly what save() would write for its conversation. Throws as load().
  static bool is_saved(const std::string& path);

 private:
  static ChatMessages from_json(Json parsed, const std::string& path);

  std::string system_;
  Json turns_ = Json::array();
};

}  // namespace snapkv::cli
