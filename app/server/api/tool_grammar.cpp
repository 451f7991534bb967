// SPDX-License-Identifier: MIT
// Grammars for calls that must be made: tool_grammar() of tools.h. Marks that are control tokens
// (Mistral's [TOOL_CALLS]) are in no grammar; ToolStream knows calls without them.
#include <fmt/core.h>

#include <cctype>

#include "server/api/api_error.h"
#include "server/api/parameter_grammar.h"
#include "server/api/tools.h"
#include "snapkv/grammar.h"

namespace snapkv::server {
namespace {

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'; }

/// The rule `name` for a call of one function, and the rules of its arguments.
std::string call_rules(const Json& function, const std::string& name, const char* arguments) {
  const auto called = function["name"].get<std::string>();
  const std::string rule = name + "-arguments";
  try {
    const Grammar grammar = Grammar::from_json_schema(to_text(function["parameters"]), called);
    return fmt::format("{} ::= \"{{\\\"name\\\": \\\"{}\\\", \\\"{}\\\": \" {} \"}}\"\n", name,
                       called, arguments, rule) +
           with_rules_named(grammar.source(), rule) + "\n";
  } catch (const Error& e) {
    throw bad_request("tools", fmt::format("'tools': the parameters of {}", e.what()));
  }
}

}  // namespace

// Literals, sets of characters and numbers of repetitions stay.
std::string with_rules_named(const std::string& gbnf, const std::string& name) {
  constexpr std::string_view kOpening = "\"[{", kClosing = "\"]}";
  std::string text;
  size_t end = 0;
  for (size_t i = 0; i < gbnf.size(); i = end) {
    end = i + 1;
    if (const size_t kind = kOpening.find(gbnf[i]); kind != std::string_view::npos) {
      while (end < gbnf.size() && gbnf[end] != kClosing[kind]) end += gbnf[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, gbnf.size());
      text += gbnf.substr(i, end - i);
    } else if (is_name(gbnf[i])) {
      while (end < gbnf.size() && is_name(gbnf[end])) ++end;
      const std::string rule = gbnf.substr(i, end - i);
      text += rule == "root" ? name : name + "-" + rule;
    } else {
      text += gbnf[i];
    }
  }
  return text;
}

std::string tool_grammar(const Tools& tools, ToolFormat format) {
  std::string rules, call;
  size_t n = 0;
  for (const Json& tool : tools.list) {
    const Json& function = tool["function"];
    if (!tools.function.empty() && function["name"] != tools.function) continue;
    const std::string name = fmt::format("call-{}", n++);
    rules +=
        format == ToolFormat::coder
            ? parameter_call_rules(function, name)
            : call_rules(function, name, format == ToolFormat::llama3 ? "parameters" : "arguments");
    call += (call.empty() ? "" : " | ") + name;
  }
  rules += fmt::format("call ::= {}\n", call);
  const char* const more_marked = tools.parallel ? " (\"\\n\" marked)*" : "";
  switch (format) {
    case ToolFormat::hermes:
      return fmt::format(
                 "root ::= marked{}\n"
                 "marked ::= \"<tool_call>\\n\" call \"\\n</tool_call>\"\n",
                 more_marked) +
             rules;
    case ToolFormat::coder:
      return fmt::format(
                 "root ::= marked{}\n"
                 "marked ::= \"<tool_call>\\n<function=\" call \"</function>\\n</tool_call>\"\n",
                 more_marked) +
             rules + parameter_text_rules();
    case ToolFormat::mistral:
      return fmt::format("root ::= \"[\" call{} \"]\"\n", tools.parallel ? " (\", \" call)*" : "") +
             rules;
    default:
      return "root ::= call\n" + rules;
  }
}

}  // namespace snapkv::server
