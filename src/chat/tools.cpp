// SPDX-License-Identifier: MIT
#include "chat/tools.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "chat/call_syntax.h"
#include "chat/harmony.h"

namespace snapkv::chat {

std::vector<std::string> Tools::names() const {
  std::vector<std::string> all;
  for (const Json& tool : list) all.push_back(tool["function"]["name"].get<std::string>());
  return all;
}

std::map<std::string, Json> Tools::schemas() const {
  std::map<std::string, Json> all;
  for (const Json& tool : list) {
    all[tool["function"]["name"].get<std::string>()] = tool["function"]["parameters"];
  }
  return all;
}

const char* format_name(ToolFormat format) {
  if (format == ToolFormat::harmony) return "harmony";
  const CallSyntax* syntax = find_syntax(format);
  return syntax == nullptr ? "none" : syntax->name;
}

bool shows_tools(const std::string& source) { return source.find("tools") != std::string::npos; }

ToolFormat tool_format(const std::string& source) {
  const auto has = [&](std::string_view text) { return source.find(text) != std::string::npos; };
  const bool shows = shows_tools(source);
  if (shows && writes_harmony(source)) return ToolFormat::harmony;
  for (const CallSyntax& syntax : call_syntaxes()) {
    const auto& texts = syntax.in_template;
    const bool is_known = has(texts[0]) && has(texts[1]);
    const bool is_other = !syntax.or_in_template.empty() && has(syntax.or_in_template);
    // that a template writes earlier calls says as much of their format
    if ((is_known || is_other) && (shows || has("tool_calls"))) return syntax.format;
  }
  return ToolFormat::none;
}

ToolFormat tool_format_or_generic(const std::string& source) {
  const ToolFormat format = tool_format(source);
  return format == ToolFormat::none ? ToolFormat::generic : format;
}

}  // namespace snapkv::chat
