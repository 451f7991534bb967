// SPDX-License-Identifier: MIT
#include "server/api/custom_tools.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace snapkv::server {
namespace {

/// The description, and the grammar of the input for a model that knows functions only.
std::string custom_description(const Fields& tool, const Fields& grammar) {
  std::string text = tool.text("description").value_or("");
  if (tool.inside("format").text("type").value_or("text") == "grammar") {
    text += fmt::format("{}The input must be a text of this grammar ({}):\n{}",
                        text.empty() ? "" : "\n\n", grammar.text("syntax").value_or("lark"),
                        grammar.text("definition").value_or(""));
  }
  return text;
}

}  // namespace

Json custom_function(const Fields& tool, const Fields& grammar) {
  return {{"name", tool.needed_text("name")},
          {"description", custom_description(tool, grammar)},
          {"parameters",
           {{"type", "object"},
            {"properties", {{"input", {{"type", "string"}}}}},
            {"required", {"input"}},
            {"additionalProperties", false}}}};
}

Json custom_arguments(const std::string& input) { return {{"input", input}}; }

std::string custom_input(const std::string& arguments) {
  const Json held = parse_held(arguments);
  const bool has_input = held.is_object() && held.contains("input") && held["input"].is_string();
  return has_input ? held["input"].get<std::string>() : arguments;
}

}  // namespace snapkv::server
