// SPDX-License-Identifier: MIT
#include "chat/message_forms.h"

#include <nlohmann/json.hpp>
#include <string>

namespace snapkv::chat {
namespace {

constexpr const char* kBreak = "\n\n";

void append(std::string& text, const std::string& more, const char* between) {
  if (!text.empty() && !more.empty()) text += between;
  text += more;
}

std::string content_of(const Json& message) {
  const auto found = message.find("content");
  return found != message.end() && found->is_string() ? found->get<std::string>() : "";
}

/// Adds to the last message where it has the same role: templates want roles in turns.
void add_text(Json& messages, const char* role, const std::string& text, const char* between) {
  if (messages.empty() || messages.back()["role"] != role) {
    messages.push_back({{"role", role}, {"content", text}});
    return;
  }
  std::string all = content_of(messages.back());
  append(all, text, between);
  messages.back()["content"] = all;
}

constexpr const char* kBeforeTools =
    "You can call functions to help with the user's request. These are the functions, one JSON "
    "object a line:\n<tools>\n";
constexpr const char* kGenericCall =
    "To call a function, write a JSON object with its name and arguments between "
    "<tool_call> and </tool_call>, and nothing after it:\n<tool_call>\n{\"name\": FUNCTION, "
    "\"arguments\": OBJECT}\n</tool_call>\nThe result comes back between <tool_response> and "
    "</tool_response>.";

/// How to write calls in this format.
std::string call_description(const CallSyntax& syntax) {
  if (syntax.format == ToolFormat::generic) return kGenericCall;
  const Json example = {{"function", {{"name", "FUNCTION"}, {"arguments", {{"KEY", "VALUE"}}}}}};
  return "To call functions, write this, with one such part for each call, and nothing after "
         "it:\n" +
         write_calls(syntax, Json::array({example})) + "\nThe results come back then.";
}

}  // namespace

Json calls_as_text(const Json& messages, const CallSyntax& syntax, bool user_results) {
  Json all = Json::array();
  bool after_result = false;  // the last message holds results
  for (const Json& message : messages) {
    const bool is_result = user_results && message["role"] == "tool";
    if (is_result) {
      const std::string text = "<tool_response>\n" + content_of(message) + "\n</tool_response>";
      if (after_result) {
        add_text(all, "user", text, "\n");
      } else {
        all.push_back({{"role", "user"}, {"content", text}});
      }
    } else if (after_result && message["role"] == "user") {
      add_text(all, "user", content_of(message), kBreak);
    } else {
      Json plain = message;
      std::string text = content_of(message);
      if (const auto calls = message.find("tool_calls"); calls != message.end()) {
        append(text, write_calls(syntax, *calls), "\n");
      }
      plain.erase("tool_calls");
      plain["content"] = text;
      all.push_back(std::move(plain));
    }
    after_result = is_result;
  }
  return all;
}

void describe_tools(Json& messages, const Json& tools, const CallSyntax& syntax) {
  std::string text = kBeforeTools;
  for (const Json& tool : tools) text += to_text(tool) + "\n";
  text +=
      "</tools>\n\n" + call_description(syntax) + " Where no function is needed, answer the user.";
  if (messages.empty() || messages[0]["role"] != "system") {
    messages.insert(messages.begin(), Json{{"role", "system"}, {"content", text}});
    return;
  }
  std::string all = content_of(messages[0]);
  append(all, text, kBreak);
  messages[0]["content"] = all;
}

Json system_as_user(const Json& messages, bool keeps_first) {
  Json all = Json::array();
  std::string pending;  // system messages that no user's message has taken yet
  for (const Json& message : messages) {
    const std::string text = content_of(message);
    if (message["role"] == "system") {
      const bool is_first = all.empty() || (all.size() == 1 && all[0]["role"] == "system");
      if (keeps_first && is_first) {
        add_text(all, "system", text, kBreak);
      } else {
        append(pending, text, kBreak);
      }
    } else if (message["role"] == "user") {
      append(pending, text, kBreak);
      add_text(all, "user", pending, kBreak);
      pending.clear();
    } else {
      if (!pending.empty()) add_text(all, "user", pending, kBreak);
      pending.clear();
      all.push_back(message);
    }
  }
  if (!pending.empty()) add_text(all, "user", pending, kBreak);
  return all;
}

}  // namespace snapkv::chat
