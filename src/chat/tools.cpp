// SPDX-License-Identifier: MIT
#include "chat/tools.h"

#include <nlohmann/json.hpp>

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
  switch (format) {
    case ToolFormat::hermes:
      return "hermes";
    case ToolFormat::llama3:
      return "llama3";
    case ToolFormat::mistral:
      return "mistral";
    case ToolFormat::coder:
      return "qwen3-coder";
    case ToolFormat::harmony:
      return "harmony";
    case ToolFormat::generic:
      return "generic";
    default:
      return "none";
  }
}

ToolFormat tool_format(const std::string& source) {
  const auto has = [&](const char* text) { return source.find(text) != std::string::npos; };
  if (!has("tools")) return ToolFormat::none;
  if (writes_harmony(source)) return ToolFormat::harmony;
  if (has("[TOOL_CALLS]")) return ToolFormat::mistral;
  if (has("<arg_key>")) return ToolFormat::none;  // GLM's format, which uses <tool_call> too
  if (has("<tool_call>")) {
    return has("<function=") && has("<parameter=") ? ToolFormat::coder : ToolFormat::hermes;
  }
  // Llama 3.x: "Respond in the format {"name": function name, "parameters": ...}"
  if (has("<|python_tag|>") || (has("<|start_header_id|>") && has("parameters"))) {
    return ToolFormat::llama3;
  }
  return ToolFormat::none;
}

ToolFormat tool_format_or_generic(const std::string& source) {
  const ToolFormat format = tool_format(source);
  return format == ToolFormat::none ? ToolFormat::generic : format;
}

}  // namespace snapkv::chat
