// SPDX-License-Identifier: MIT
// Tools of OpenAI's Responses API, which has more kinds than functions: tools of a namespace,
// custom tools whose input is a text, and tools that OpenAI's servers run. The model sees
// functions; the client gets its own names back.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "server/api/tools.h"

namespace snapkv::server {

/// What a client calls a function that the model sees.
struct ResponseToolName {
  std::string name;
  std::string name_space = {};  ///< empty: none
  bool is_custom = false;       ///< its one argument, `input`, is the text that the client gets
};

struct ResponseTools {
  Tools tools;
  std::map<std::string, ResponseToolName> names;  ///< by the name that the model sees
  int n_renamed = 0;                              ///< those of namespaces
};

/// `tools`, `tool_choice` and `parallel_tool_calls`. Tools that OpenAI's servers would run are left
/// out, which is added to `warnings`.
ResponseTools read_response_tools(const Fields& body, std::vector<std::string>& warnings);

/// The name that the model sees for a tool of a namespace.
std::string name_in(const std::string& name_space, const std::string& name);

}  // namespace snapkv::server
