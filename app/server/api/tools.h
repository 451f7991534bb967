// SPDX-License-Identifier: MIT
// Tools: the functions that a request offers to the model, and the format in which the model's
// template has it call them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/api/fields.h"

namespace snapkv::server {

/// How a model writes its calls, as its template shows.
enum class ToolFormat {
  none,     ///< the template knows no tools
  hermes,   ///< <tool_call>{"name": ..., "arguments": {...}}</tool_call>: Qwen, Hermes
  llama3,   ///< {"name": ..., "parameters": {...}}
  mistral,  ///< [TOOL_CALLS][{"name": ..., "arguments": {...}}]
  coder,    ///< <tool_call><function=...><parameter=...>...: Qwen3-Coder, Qwen 3.5
};

/// By what the template's source mentions.
ToolFormat tool_format(const std::string& template_source);
/// "none", "hermes" and so on: for /props and messages.
const char* format_name(ToolFormat format);

struct Tools {
  enum class Choice { automatic, none, required };
  /// As OpenAI's chat completions have them, for the template:
  /// [{"type": "function", "function": {"name", "description", "parameters"}}]
  Json list = Json::array();
  Choice choice = Choice::automatic;
  std::string function;  ///< with Choice::required: the one that must be called; empty: any
  bool parallel = true;  ///< more than one call in an answer

  bool offered() const { return !list.empty() && choice != Choice::none; }
  std::vector<std::string> names() const;
  /// Of each function's parameters, by its name.
  std::map<std::string, Json> schemas() const;
};

/// `tools`, `tool_choice` and `parallel_tool_calls` of chat completions.
Tools read_tools(const Fields& body);

/// Adds one function, from wherever a format has its parts. Throws for what is no schema.
void add_tool(Tools& tools, const Fields& function, const char* schema_field);
/// Throws where `function` is none of the tools.
void choose_function(Tools& tools, const Fields& body, const std::string& function);
/// What OpenAI's `tool_choice` says: nothing, none, auto, required, or a function, whose name
/// `function_name` reads from the object.
void read_tool_choice(Tools& tools, const Fields& body,
                      const std::function<std::string(const Fields& choice)>& function_name);

/// A grammar (GBNF) for the calls that Choice::required asks for, in this format. Throws ApiError
/// where it has none for a tool's parameters.
std::string tool_grammar(const Tools& tools, ToolFormat format);

/// An id for a call; Mistral's templates want nine letters or digits.
std::string tool_call_id(ToolFormat format);

}  // namespace snapkv::server
