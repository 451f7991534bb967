// SPDX-License-Identifier: MIT
#include "server/api/response_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "server/api/custom_tools.h"

namespace snapkv::server {
namespace {

// What OpenAI's servers run, or a program that only its own models know.
constexpr auto kHosted = std::to_array<std::string_view>(
    {"web_search", "file_search", "code_interpreter", "computer_use", "computer-use", "computer",
     "image_generation", "local_shell", "shell", "apply_patch", "mcp", "tool_search"});

bool is_hosted(const std::string& type) {  // some have a date or "_preview" at their end
  return std::any_of(kHosted.begin(), kHosted.end(),
                     [&](std::string_view name) { return type.starts_with(name); });
}

class ToolListReader {
 public:
  ToolListReader(ResponseTools& all, std::vector<std::string>& warnings)
      : all_(all), warnings_(warnings) {}

  void read(const Json& json, const std::string& path, const std::string& name_space) {
    const Fields tool(json, path);
    const std::string type = tool.needed_text("type");
    if (type == "function") {
      add(json, path, name_space, "parameters", false);
    } else if (type == "custom") {
      const Json function = custom_function(tool, tool.inside("format"));
      add(function, path, name_space, "parameters", true);
    } else if (type == "namespace" && name_space.empty()) {
      (void)tool.need("tools");
      const Json& list = *tool.array("tools");
      for (size_t i = 0; i < list.size(); ++i) {
        read(list[i], fmt::format("{}tools[{}].", path, i), tool.needed_text("name"));
      }
    } else if (is_hosted(type)) {
      warnings_.push_back(
          fmt::format("{}type: {}: this server has no tools of its own", path, type));
    } else {
      tool.refuse("type", "function, custom or namespace", tool.need("type"));
    }
  }

 private:
  void add(const Json& json, const std::string& path, const std::string& name_space,
           const char* schema_field, bool is_custom) {
    const auto name = Fields(json, path).needed_text("name");
    Json function = json;
    function["name"] = name_in(name_space, name);
    add_tool(all_.tools, Fields(function, path), schema_field);
    if (!name_space.empty()) ++all_.n_renamed;
    all_.names[name_in(name_space, name)] = {name, name_space, is_custom};
  }

  ResponseTools& all_;
  std::vector<std::string>& warnings_;
};

}  // namespace

std::string name_in(const std::string& name_space, const std::string& name) {
  if (name_space.empty()) return name;
  const bool is_separated = name_space.back() == '_' || name_space.back() == '.';
  return name_space + (is_separated ? "" : "__") + name;
}

ResponseTools read_response_tools(const Fields& body, std::vector<std::string>& warnings) {
  ResponseTools all;
  if (const Json* list = body.array("tools")) {
    ToolListReader reader(all, warnings);
    for (size_t i = 0; i < list->size(); ++i) {
      reader.read((*list)[i], fmt::format("tools[{}].", i), "");
    }
  }
  read_parallel(all.tools, body);
  read_tool_choice(all.tools, body, [](const Fields& choice) {
    return name_in(choice.text("namespace").value_or(""), choice.needed_text("name"));
  });
  return all;
}

}  // namespace snapkv::server
