// SPDX-License-Identifier: MIT
// Tools: the functions that a conversation offers to the model, the format in which the model calls
// them, and the grammars of calls.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "chat/found_call.h"
#include "chat/json.h"

namespace snapkv::chat {

/// The way a model writes calls, according to its template. All but none and harmony have a row in
/// call_syntax.cpp, which says what their calls look like.
enum class ToolFormat {
  none,  ///< the template knows no tools
  dsml,
  dsml_functions,
  deepseek_r1,
  deepseek,
  hermes,   ///< <tool_call>{"name": ..., "arguments": {...}}</tool_call>: Qwen, Hermes
  llama3,   ///< {"name": ..., "parameters": {...}}
  mistral,  ///< [TOOL_CALLS][{"name": ..., "arguments": {...}}]
  mistral_named,
  coder,  ///< <tool_call><function=...><parameter=...>...: Qwen3-Coder, Qwen 3.5
  glm,
  minimax,
  seed,
  kimi,
  gemma,
  command,
  command_plus,
  apertus,
  gigachat,
  lfm2,
  phi,
  granite,
  apriel,
  nemotron,
  firefunction,
  functionary,
  recipients,  ///< Functionary v3.2: >>>NAME and arguments, or >>>all and text
  harmony,     ///< gpt-oss: messages to functions (harmony.h)
  generic,     ///< as hermes, where the template knows no tools: the messages describe them
};

/// Chooses the format by what the template's source mentions. A template may know a format without
/// showing tools (shows_tools()): then the messages describe them.
ToolFormat tool_format(const std::string& template_source);
/// Whether the template writes the tools of a request.
bool shows_tools(const std::string& template_source);
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
  bool any_form = true;  ///< calls may also have the form of another template (call_forms.h)

  bool offered() const { return !list.empty() && choice != Choice::none; }
  std::vector<std::string> names() const;
  /// The schemas of each function's parameters, by function name.
  std::map<std::string, Json> schemas() const;
};

/// A grammar (GBNF) for the calls that Choice::required asks for, in this format; of harmony's call
/// the part after the header that the prompt ends in (harmony_opening()). Throws FieldError
/// where it has none for a tool's parameters; what a schema says and a grammar can't is left out
/// and added to `warnings`.
std::string tool_grammar(const Tools& tools, ToolFormat format, std::vector<std::string>& warnings);
/// Either an answer by another grammar, or calls.
std::string answer_or_call_grammar(const std::string& answer, const Tools& tools, ToolFormat format,
                                   std::vector<std::string>& warnings);
/// Any text, and calls at its end, each after the mark of the format (hermes, generic).
std::string text_or_call_grammar(const Tools& tools, ToolFormat format,
                                 std::vector<std::string>& warnings);

/// A grammar for an answer from the beginning of a call on, which begun_call_text() or
/// begun_arguments_text() stand for, up to the call's end; any text may follow. The arguments are
/// JSON that fits the tool's schema, as far as a grammar can say it: `notes` names tools whose
/// arguments may be any object. Throws FieldError if the schemas are too large together.
std::string begun_call_grammar(const Tools& tools, ToolFormat format,
                               std::vector<std::string>& notes);
/// How texts of that grammar begin: where the template's mark before a call has been written (not
/// in formats whose calls have none or no JSON), and where the arguments of one begin.
std::string begun_call_text(ToolFormat format);
std::string begun_arguments_text(const ArgumentsStart& start);

}  // namespace snapkv::chat
