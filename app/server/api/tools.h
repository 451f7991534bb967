// SPDX-License-Identifier: MIT
// Tools: the functions that a request offers to the model, and the format in which the model calls
// them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/api/fields.h"

namespace snapkv::server {

/// The way a model writes calls, according to its template.
enum class ToolFormat {
  none,     ///< the template knows no tools
  hermes,   ///< <tool_call>{"name": ..., "arguments": {...}}</tool_call>: Qwen, Hermes
  llama3,   ///< {"name": ..., "parameters": {...}}
  mistral,  ///< [TOOL_CALLS][{"name": ..., "arguments": {...}}]
  coder,    ///< <tool_call><function=...><parameter=...>...: Qwen3-Coder, Qwen 3.5
};

/// Chooses the format by what the template's source mentions.
ToolFormat tool_format(const std::string& template_source);
/// "none", "hermes" and so on: for /props and messages.
const char* format_name(ToolFormat format);

struct Tools {
  enum class Choice { automatic, none, required };
  /// In the form of OpenAI's chat completions, for the template:
  /// [{"type": "function", "function": {"name", "description", "parameters"}}]
  Json list = Json::array();
  Choice choice = Choice::automatic;
  std::string function;  ///< with Choice::required, the function that must be called; empty: any
  bool parallel = true;  ///< more than one call per answer is allowed

  bool offered() const { return !list.empty() && choice != Choice::none; }
  std::vector<std::string> names() const;
  /// The schemas of each function's parameters, by function name.
  std::map<std::string, Json> schemas() const;
};

/// Reads `tools`, `tool_choice` and `parallel_tool_calls` of chat completions.
Tools read_tools(const Fields& body);

/// Adds a function whose schema is in `schema_field`. Throws if that is not a schema.
void add_tool(Tools& tools, const Fields& function, const char* schema_field);
/// Makes `function` required. Throws if it is not one of the tools.
void choose_function(Tools& tools, const Fields& body, const std::string& function);
/// Reads OpenAI's `tool_choice`: absent, none, auto, required, or an object from which
/// `function_name` reads a function's name.
void read_tool_choice(Tools& tools, const Fields& body,
                      const std::function<std::string(const Fields& choice)>& function_name);

/// Returns a grammar (GBNF) for the calls that Choice::required asks for, in this format. Throws
/// ApiError if a tool's parameters have no grammar.
std::string tool_grammar(const Tools& tools, ToolFormat format);

/// Returns a new id for a call; Mistral's templates require nine letters or digits.
std::string tool_call_id(ToolFormat format);

}  // namespace snapkv::server
