// SPDX-License-Identifier: MIT
#include "server/api/tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "server/api/api_error.h"
#include "server/api/custom_tools.h"
#include "server/api/generation_fields.h"
#include "server/api/grammars.h"

namespace snapkv::server {
namespace {

constexpr size_t kMostTools = 128, kMostFunctionName = 128;

bool is_name(const std::string& name) {
  return !name.empty() && name.size() <= kMostFunctionName &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
         });
}

}  // namespace

void add_tool(Tools& tools, const Fields& function, const char* schema_field) {
  const std::string name = function.needed_text("name");
  if (!is_name(name)) {
    function.refuse("name",
                    fmt::format("1 to {} letters, digits, '_', '-' or '.'", kMostFunctionName),
                    Json(name));
  }
  const auto names = tools.names();
  if (std::find(names.begin(), names.end(), name) != names.end()) {
    function.refuse("name", fmt::format("there are two tools '{}'", name));
  }
  if (tools.list.size() == kMostTools) {
    function.refuse("name", fmt::format("at most {} tools are possible", kMostTools));
  }
  const Json* schema = function.object(schema_field);
  Json described = {{"name", name}};
  if (const auto description = function.text("description")) {
    described["description"] = *description;
  }
  described["parameters"] =
      schema != nullptr ? *schema : Json{{"type", "object"}, {"properties", Json::object()}};
  tools.list.push_back({{"type", "function"}, {"function", described}});
}

void choose_function(Tools& tools, const Fields& body, const std::string& function) {
  const auto names = tools.names();
  if (std::find(names.begin(), names.end(), function) == names.end()) {
    body.refuse("tool_choice", fmt::format("there is no tool '{}'", function));
  }
  tools.choice = Tools::Choice::required;
  tools.function = function;
}

void read_parallel(Tools& tools, const Fields& body) {
  const std::optional<bool> parallel = body.boolean("parallel_tool_calls");
  const Json* choice = body.find("tool_choice");
  const bool names_one =
      choice != nullptr && choice->is_object() && choice->value("type", Json()) != "allowed_tools";
  tools.parallel = parallel.value_or(!names_one);
}

namespace {

using FunctionName = std::function<std::string(const Fields& choice)>;

/// Leaves the other tools out.
void allow_only(Tools& tools, const Fields& body, const Fields& allowed,
                const FunctionName& function_name) {
  (void)allowed.need("tools");
  const Json& list = *allowed.array("tools");
  const auto names = tools.names();
  std::vector<std::string> kept;
  for (size_t i = 0; i < list.size(); ++i) {
    const Fields one(list[i], fmt::format("{}[{}].", allowed.name("tools"), i));
    kept.push_back(function_name(one));
    if (std::find(names.begin(), names.end(), kept.back()) == names.end()) {
      body.refuse("tool_choice", fmt::format("there is no tool '{}'", kept.back()));
    }
  }
  Json left = Json::array();
  for (const Json& tool : tools.list) {
    const auto& name = tool["function"]["name"].get_ref<const std::string&>();
    if (std::find(kept.begin(), kept.end(), name) != kept.end()) left.push_back(tool);
  }
  tools.list = std::move(left);
  const std::string mode = allowed.text("mode").value_or("auto");
  if (mode == "required") {
    if (tools.list.empty()) allowed.refuse("tools", "\"required\" needs one");
    tools.choice = Tools::Choice::required;
  } else if (mode != "auto") {
    allowed.refuse("mode", "auto or required", Json(mode));
  }
}

}  // namespace

void read_tool_choice(Tools& tools, const Fields& body, const FunctionName& function_name) {
  const Json* choice = body.find("tool_choice");
  if (choice == nullptr) return;
  if (choice->is_object()) {
    const Fields fields(*choice, "tool_choice.");
    const std::string type = fields.needed_text("type");
    if (type == "allowed_tools") {
      const bool nested = fields.has("allowed_tools");  // in chat completions
      allow_only(tools, body, nested ? fields.inside("allowed_tools") : fields, function_name);
    } else if (type == "function" || type == "custom") {
      choose_function(tools, body, function_name(fields));
    } else {
      fields.refuse("type", "\"function\" or \"allowed_tools\"", fields.need("type"));
    }
  } else if (*choice == "none") {
    tools.choice = Tools::Choice::none;
  } else if (*choice == "required") {
    if (tools.list.empty()) body.refuse("tool_choice", "\"required\" needs 'tools'");
    tools.choice = Tools::Choice::required;
  } else if (*choice != "auto") {
    body.refuse("tool_choice", "none, auto, required or {\"type\": \"function\", ...}", *choice);
  }
}

namespace {

/// A tool of chat completions: its description is in a member that is called as its type.
void read_tool(Tools& tools, const Fields& tool, const std::string& path) {
  const std::string type = tool.needed_text("type");
  if (type == "function") {
    add_tool(tools, Fields(tool.need("function"), path + "function."), "parameters");
  } else if (type == "custom") {
    const Fields custom(tool.need("custom"), path + "custom.");
    const Json function = custom_function(custom, custom.inside("format").inside("grammar"));
    add_tool(tools, Fields(function, path + "custom."), "parameters");
    tools.custom.insert(function["name"].get<std::string>());
  } else {
    tool.refuse("type", "function or custom, the kinds of tools that are supported",
                tool.need("type"));
  }
}

}  // namespace

Tools read_tools(const Fields& body) {
  Tools tools;
  if (const Json* list = body.array("tools")) {
    for (size_t i = 0; i < list->size(); ++i) {
      const std::string path = fmt::format("tools[{}].", i);
      read_tool(tools, Fields((*list)[i], path), path);
    }
  }
  read_parallel(tools, body);
  read_tool_choice(tools, body, [](const Fields& choice) {
    const char* const kind =
        choice.text("type").value_or("function") == "custom" ? "custom" : "function";
    return Fields(choice.need(kind), choice.name(kind) + ".").needed_text("name");
  });
  return tools;
}

void read_call_form(Tools& tools, const Fields& body, const ApiOptions& options) {
  const auto form = body.text("tool_calls");
  if (form && *form != "auto" && *form != "strict") {
    body.refuse("tool_calls", "auto or strict", Json(*form));
  }
  tools.any_form = form ? *form == "auto" : options.any_call_form;
}

std::string tool_call_id(ToolFormat format) {
  const bool is_mistral = format == ToolFormat::mistral || format == ToolFormat::mistral_named;
  return is_mistral ? random_id(9) : "call_" + random_id();
}

}  // namespace snapkv::server
