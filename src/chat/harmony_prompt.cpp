// SPDX-License-Identifier: MIT
#include "chat/harmony_prompt.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "chat/message_forms.h"

namespace snapkv::chat {
namespace {

bool is_tools(const Json& message) { return message.value("role", "") == "tool"; }

std::string text_in(const Json& message, const char* name) {
  const auto found = message.find(name);
  return found != message.end() && found->is_string() ? found->get<std::string>() : "";
}

/// Reasoning and text before a call: the template shows one of them.
void join_thinking(Json& message) {
  std::string all = text_in(message, "reasoning_content");
  const std::string text = text_in(message, "content");
  if (!all.empty() && !text.empty()) all += "\n\n";
  all += text;
  if (all.empty()) return;
  message["content"] = "";
  message["thinking"] = std::move(all);
}

/// Takes the result of a call out of `results`: the one that names it, or the first where the call
/// or the result has no name.
std::optional<Json> take_result(std::vector<Json>& results, const std::string& call) {
  auto found = std::find_if(results.begin(), results.end(), [&](const Json& result) {
    return !call.empty() && text_in(result, "tool_call_id") == call;
  });
  if (found == results.end()) {
    found = std::find_if(results.begin(), results.end(), [&](const Json& result) {
      return call.empty() || text_in(result, "tool_call_id").empty();
    });
  }
  if (found == results.end()) return std::nullopt;
  Json result = std::move(*found);
  results.erase(found);
  return result;
}

/// Adds a message for each of the calls, followed by its result.
void add_calls(const Json& message, std::vector<Json> results, Json& all) {
  Json one = message;
  for (const Json& call : message["tool_calls"]) {
    one["tool_calls"] = Json::array({call});
    all.push_back(one);
    one = {{"role", "assistant"}, {"content", ""}};
    if (auto result = take_result(results, text_in(call, "id"))) all.push_back(std::move(*result));
  }
  for (Json& rest : results) all.push_back(std::move(rest));
}

bool has_late_system(const Json& messages) {
  for (size_t i = 1; i < messages.size(); ++i) {
    if (messages[i].value("role", "") == "system") return true;
  }
  return false;
}

constexpr const char* kCall = "<|channel|>commentary to=functions.";

}  // namespace

Json one_call_a_message(const Json& messages) {
  Json all = Json::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto calls = messages[i].find("tool_calls");
    if (calls == messages[i].end() || calls->empty()) {
      all.push_back(messages[i]);
      continue;
    }
    std::vector<Json> results;
    const Json& message = messages[i];
    while (i + 1 < messages.size() && is_tools(messages[i + 1])) results.push_back(messages[++i]);
    add_calls(message, std::move(results), all);
  }
  return all;
}

void fit_harmony_messages(Json& messages, std::vector<std::string>& warnings) {
  if (has_late_system(messages)) {
    messages = system_as_user(messages, /*keeps_first=*/true);
    warnings.emplace_back(
        "messages: the chat template shows system messages only at the beginning: later ones are "
        "part of the user's");
  }
  messages = one_call_a_message(messages);
  for (Json& message : messages) {
    const auto calls = message.find("tool_calls");
    if (calls != message.end() && !calls->empty()) join_thinking(message);
  }
}

Json harmony_tools(const Json& tools) {
  Json all = tools;
  for (Json& tool : all) {
    Json& function = tool["function"];
    if (!function.contains("description")) function["description"] = "";
    const auto parameters = function.find("parameters");
    if (parameters == function.end() || !parameters->is_object()) continue;
    const auto properties = parameters->find("properties");
    if (properties == parameters->end() || !properties->is_object()) continue;
    for (Json& property : *properties) {
      if (!property.is_object() || !property.contains("default")) continue;
      if (!property.contains("enum") && !property.contains("oneOf")) continue;
      if (!property["default"].is_string()) property["default"] = to_text(property["default"]);
    }
  }
  return all;
}

void fit_harmony_effort(Json& variables) {
  const auto effort = variables.find("reasoning_effort");
  if (effort == variables.end()) return;
  if (*effort == "none" || *effort == "minimal") *effort = "low";
  if (*effort == "xhigh" || *effort == "max") *effort = "high";
}

const Json* only_function(const Tools& tools) {
  const Json* only = nullptr;
  for (const Json& tool : tools.list) {
    const Json& function = tool["function"];
    if (!tools.function.empty() && function["name"] != tools.function) continue;
    if (only != nullptr) return nullptr;
    only = &function;
  }
  return only;
}

std::string harmony_opening(const Tools& tools, bool answers_at_once, bool continues) {
  if (!tools.offered() || tools.choice != Tools::Choice::required) {
    return answers_at_once && !continues ? "<|channel|>final<|message|>" : "";
  }
  const Json* const only = only_function(tools);
  return (continues ? "<|end|><|start|>assistant" : "") + std::string(kCall) +
         (only == nullptr ? ""
                          : (*only)["name"].get<std::string>() + " <|constrain|>json<|message|>");
}

}  // namespace snapkv::chat
