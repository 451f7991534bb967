// SPDX-License-Identifier: MIT
#include "chat/call_history.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "chat/harmony_prompt.h"
#include "chat/message_forms.h"

namespace snapkv::chat {
namespace {

/// How messages with calls are written for a template.
struct HistoryForm {
  bool has_null = false;        ///< no text is null, not ""
  bool splits_text = false;     ///< text before calls is a message of its own
  bool one_call = false;        ///< each call is a message, followed by its result
  bool text_arguments = false;  ///< arguments are JSON as a text
  bool as_text = false;         ///< calls are text of their message
  bool user_results = false;    ///< with as_text: results are the user's
};

constexpr HistoryForm kHistoryForms[] = {
    {},
    {.text_arguments = true},
    {.has_null = true},
    {.has_null = true, .text_arguments = true},
    {.splits_text = true},
    {.splits_text = true, .text_arguments = true},
    {.has_null = true, .splits_text = true},
    {.has_null = true, .splits_text = true, .text_arguments = true},
    {.one_call = true},
    {.one_call = true, .text_arguments = true},
    {.has_null = true, .splits_text = true, .one_call = true},
    {.has_null = true, .splits_text = true, .one_call = true, .text_arguments = true},
    {.as_text = true},
    {.as_text = true, .user_results = true},
};

bool has_text(const Json& message) {
  const auto content = message.find("content");
  return content != message.end() && content->is_string() &&
         !content->get_ref<const std::string&>().empty();
}

bool has_call(const Json& message) {
  const auto calls = message.find("tool_calls");
  return calls != message.end() && !calls->empty();
}

/// The message of the assistant, in one message or two.
void add_with_calls(Json message, const HistoryForm& form, Json& all) {
  if (form.splits_text && has_text(message)) {
    all.push_back({{"role", "assistant"}, {"content", message["content"]}});
    message["content"] = "";
  }
  if (form.has_null && !has_text(message)) message["content"] = nullptr;
  for (Json& call : message["tool_calls"]) {
    Json& arguments = call["function"]["arguments"];
    if (form.text_arguments && !arguments.is_string()) arguments = to_text(arguments);
  }
  all.push_back(std::move(message));
}

Json in_form(const Json& messages, const HistoryForm& form, const CallSyntax& syntax) {
  if (form.as_text) return calls_as_text(messages, syntax, form.user_results);
  Json all = Json::array();
  for (const Json& message : form.one_call ? one_call_a_message(messages) : messages) {
    if (has_call(message)) {
      add_with_calls(message, form, all);
    } else {
      all.push_back(message);
    }
  }
  return all;
}

/// Gemma's templates want results inside the message with the calls.
void add_responses(Json& messages) {
  Json all = Json::array();
  std::optional<size_t> last;  // the message whose results follow
  for (Json& message : messages) {
    if (message["role"] != "tool" || !last) {
      last = has_call(message) ? std::optional<size_t>(all.size()) : std::nullopt;
      all.push_back(std::move(message));
      continue;
    }
    Json& owner = all[*last];
    const size_t index = owner.contains("tool_responses") ? owner["tool_responses"].size() : 0;
    std::string name = message.value("name", "");
    for (size_t i = 0; i < owner["tool_calls"].size(); ++i) {
      const Json& call = owner["tool_calls"][i];
      const std::string id = call.value("id", "");
      const bool is_call = id.empty() ? i == index : id == message.value("tool_call_id", "");
      if (is_call) name = call["function"]["name"].get<std::string>();
    }
    owner["tool_responses"].push_back({{"name", name}, {"response", message["content"]}});
  }
  messages = std::move(all);
}

/// Kimi's ids are functions.NAME:NUMBER. `per_message`: each message counts from 0.
void number_calls(Json& messages, bool per_message) {
  std::vector<std::pair<std::string, std::string>> ids;  // given and new ones of the last calls
  size_t n = 0, n_results = 0;
  for (Json& message : messages) {
    if (has_call(message)) {
      ids.clear();
      n_results = 0;
      if (per_message) n = 0;
      for (Json& call : message["tool_calls"]) {
        const auto& name = call["function"]["name"].get_ref<const std::string&>();
        std::string id = fmt::format("functions.{}:{}", name, n++);
        ids.emplace_back(call.value("id", ""), id);
        call["id"] = std::move(id);
      }
    } else if (message["role"] == "tool") {
      const std::string given = message.value("tool_call_id", "");
      auto found = std::find_if(ids.begin(), ids.end(), [&](const auto& id) {
        return !given.empty() && id.first == given;
      });
      if (found == ids.end() && given.empty() && n_results < ids.size()) {
        found = ids.begin() + static_cast<std::ptrdiff_t>(n_results);
      }
      if (found != ids.end()) message["tool_call_id"] = found->second;
      ++n_results;
    }
  }
}

/// What a template shows of a conversation with calls, as marks in it.
struct Probe {
  Json messages = Json::array();
  std::vector<std::vector<std::string>> orders;  ///< marks that must follow each other
};

/// A conversation with all that there may be: a call, then text with calls, and an answer.
/// `has_text`: with that text.
Probe make_probe(bool has_text) {
  Probe probe;
  const auto say = [&](const char* role, const char* text) {
    probe.messages.push_back({{"role", role}, {"content", text}});
  };
  std::vector<std::string> calls;
  const auto call = [&](const char* text, int n) {
    Json message = {{"role", "assistant"}, {"content", text}};
    std::vector<Json> results;
    for (; n > 0; --n) {
      const size_t i = calls.size();
      const std::string id = fmt::format("snapkv00{}", i), name = fmt::format("snapkv_tool_{}", i);
      const std::string value = fmt::format("snapkv-value-{}", i);
      const std::string result = fmt::format("snapkv-result-{}", i);
      message["tool_calls"].push_back(
          {{"id", id},
           {"type", "function"},
           {"function", {{"name", name}, {"arguments", {{"snapkv_key", value}}}}}});
      results.push_back(
          {{"role", "tool"}, {"name", name}, {"tool_call_id", id}, {"content", result}});
      probe.orders.push_back({"snapkv-question", name, value, result, "snapkv-answer"});
      calls.push_back(value);
    }
    probe.messages.push_back(std::move(message));
    for (Json& result : results) probe.messages.push_back(std::move(result));
  };
  say("user", "snapkv-question");
  call("", 1);
  call(has_text ? "snapkv-words" : "", 2);
  say("assistant", "snapkv-answer");
  say("user", "snapkv-next");
  probe.orders.push_back(calls);
  probe.orders.push_back({"snapkv-answer", "snapkv-next"});
  if (has_text) probe.orders.push_back({calls[0], "snapkv-words", calls[1]});
  return probe;
}

bool shows_all(const std::string& text, const Probe& probe) {
  for (const auto& order : probe.orders) {
    size_t at = 0;
    for (const std::string& mark : order) {
      at = text.find(mark, at);
      if (at == std::string::npos) return false;
    }
  }
  return true;
}

}  // namespace

Json fit_calls(const ChatTemplate& tmpl, Json variables, const Json& messages,
               const CallSyntax& syntax, std::vector<std::string>& warnings) {
  const std::string& source = tmpl.source();
  const auto has = [&](const char* text) { return source.find(text) != std::string::npos; };
  const auto finished = [&](Json fitted) {
    if (syntax.format == ToolFormat::kimi) number_calls(fitted, has("loop.index0|string"));
    if (has("tool_responses")) add_responses(fitted);
    return fitted;
  };
  const auto tools = variables.find("tools");
  if (tools != variables.end() && tools->size() > 1) *tools = Json::array({(*tools)[0]});
  variables["add_generation_prompt"] = true;
  for (const bool with_text : {true, false}) {
    const Probe probe = make_probe(with_text);
    for (const HistoryForm& form : kHistoryForms) {
      if (!form.as_text && !has("tool_calls")) continue;
      if (form.as_text && with_text && has("tool_calls")) continue;  // rather without the text
      variables["messages"] = finished(in_form(probe.messages, form, syntax));
      try {
        if (!shows_all(tmpl.render(to_text(variables)).text, probe)) continue;
      } catch (const Error&) {  // the template refuses this form
        continue;
      }
      const bool loses_text = !with_text && !form.as_text &&
                              std::any_of(messages.begin(), messages.end(),
                                          [](const Json& m) { return has_call(m) && has_text(m); });
      if (loses_text) {
        warnings.emplace_back("messages: the chat template shows no text before calls");
      }
      return finished(in_form(messages, form, syntax));
    }
  }
  return has("tool_calls") ? messages : calls_as_text(messages, syntax, /*user_results=*/true);
}

namespace {

/// Gives each schema a description, and a type to all that an object or list may hold.
void describe_values(Json& schema) {
  if (schema.is_array()) {
    for (Json& each : schema) describe_values(each);
  }
  if (!schema.is_object()) return;
  for (auto& [key, value] : schema.items()) describe_values(value);
  const Json text = {{"type", "string"}};
  if (schema.contains("type") && !schema.contains("description")) schema["description"] = "";
  const auto has = [&](const char* key) { return schema.contains(key) && schema[key].is_object(); };
  if (schema.contains("type") && schema["type"] == "object" && !has("additionalProperties")) {
    schema["additionalProperties"] = text;
  }
  if (schema.contains("type") && schema["type"] == "array" && !has("items")) schema["items"] = text;
}

/// Whether the template fails with these tools.
bool refuses_tools(const ChatTemplate& tmpl, Json variables) {
  variables["messages"] = Json::array({{{"role", "user"}, {"content", "?"}}});
  variables["add_generation_prompt"] = true;
  try {
    (void)tmpl.render(to_text(variables));
  } catch (const Error&) {
    return true;
  }
  return false;
}

}  // namespace

void fit_tools(const ChatTemplate& tmpl, const Json& tools, Json& messages, Json& variables) {
  const std::string& source = tmpl.source();
  const auto has = [&](const char* text) { return source.find(text) != std::string::npos; };
  if (has("functools[") && !variables.contains("functions")) {  // Firefunction
    variables["functions"] = tools.dump(4, ' ', false, Json::error_handler_t::replace);
    if (!variables.contains("datetime")) {
      const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
      variables["datetime"] = fmt::format("{:%B %d %Y %H:%M:%S} GMT", now);
    }
  }
  if (!tools.empty() && refuses_tools(tmpl, variables)) {
    for (Json& tool : variables["tools"]) {
      Json& function = tool["function"];
      if (!function.contains("description")) function["description"] = "";
      describe_values(function["parameters"]);
    }
  }
  if (tools.empty() || !(has("message['tools']") || has("message.tools"))) return;
  if (messages.empty() || messages[0]["role"] != "system") {  // Phi 4 mini
    messages.insert(messages.begin(), Json{{"role", "system"}, {"content", ""}});
  }
  Json functions = Json::array();
  for (const Json& tool : tools) functions.push_back(tool["function"]);
  messages[0]["tools"] = to_text(functions);
}

}  // namespace snapkv::chat
