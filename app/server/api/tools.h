// SPDX-License-Identifier: MIT
// Tools: the functions that a request offers to the model, and the format in which the model calls
// them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
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
  generic,  ///< as hermes, where the template knows no tools: the messages describe them
};

/// Chooses the format by what the template's source mentions.
ToolFormat tool_format(const std::string& template_source);
/// The same, and ToolFormat::generic where the template knows no tools.
ToolFormat tool_format_or_generic(const std::string& template_source);
/// "none", "hermes" and so on: for /props and messages.
const char* format_name(ToolFormat format);

struct Tools {
  enum class Choice { automatic, none, required };
  /// In the form of OpenAI's chat completions, for the template:
  /// [{"type": "function", "function": {"name", "description", "parameters"}}]
  Json list = Json::array();
  Choice choice = Choice::automatic;
  std::set<std::string> custom;  ///< those of chat completions whose input is a text
  std::string function;  ///< with Choice::required, the function that must be called; empty: any
  bool parallel = true;  ///< more than one call per answer is allowed
  bool legacy = false;   ///< `functions`: calls are `function_call` of the message

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
/// `parallel_tool_calls`. Where nothing is said, a function that must be called is called once.
void read_parallel(Tools& tools, const Fields& body);
/// What OpenAI's `tool_choice` says: nothing, none, auto, required, a function or custom tool,
/// whose name `function_name` reads from the object, or allowed_tools. After read_parallel().
void read_tool_choice(Tools& tools, const Fields& body,
                      const std::function<std::string(const Fields& choice)>& function_name);

/// A grammar (GBNF) for the calls that Choice::required asks for, in this format. Throws ApiError
/// where it has none for a tool's parameters; what a schema says and a grammar can't is left out
/// and added to `warnings`.
std::string tool_grammar(const Tools& tools, ToolFormat format,
                         std::vector<std::string>& warnings);
/// Either an answer by another grammar, or calls.
std::string answer_or_call_grammar(const std::string& answer, const Tools& tools,
                                   ToolFormat format, std::vector<std::string>& warnings);
/// Any text, and calls at its end, each after the mark of the format (hermes, generic).
std::string text_or_call_grammar(const Tools& tools, ToolFormat format,
                                 std::vector<std::string>& warnings);

/// Returns a new id for a call; Mistral's templates require nine letters or digits.
std::string tool_call_id(ToolFormat format);

}  // namespace snapkv::server
