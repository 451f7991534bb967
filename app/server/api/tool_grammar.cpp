// SPDX-License-Identifier: MIT
// Grammars for required calls: tool_grammar() of tools.h. Marks that are control tokens (Mistral's
// [TOOL_CALLS]) are not part of the grammars; ToolStream recognizes calls without them.
#include <fmt/core.h>

#include "server/api/api_error.h"
#include "server/api/parameter_grammar.h"
#include "server/api/tool_schemas.h"
#include "server/api/tools.h"
#include "snapkv/grammar.h"

namespace snapkv::server {
namespace {

/// Returns the rule `name` for a call of one function, and the rules of its arguments.
std::string call_rules(const Json& function, const std::string& name, const char* arguments,
                       ToolSchemas& schemas) {
  const auto called = function["name"].get<std::string>();
  const std::string rule = name + "-arguments";
  try {
    return fmt::format("{} ::= \"{{\\\"name\\\": \\\"{}\\\", \\\"{}\\\": \" {} \"}}\"\n", name,
                       called, arguments, rule) +
           schemas.rules(function["parameters"], called, rule);
  } catch (const Error& e) {
    throw bad_request("tools", fmt::format("'tools': the parameters of {}", e.what()));
  }
}

}  // namespace

std::string tool_grammar(const Tools& tools, ToolFormat format) {
  ToolSchemas schemas;
  std::string rules, call;
  size_t n = 0;
  for (const Json& tool : tools.list) {
    const Json& function = tool["function"];
    if (!tools.function.empty() && function["name"] != tools.function) continue;
    const std::string name = fmt::format("call-{}", n++);
    rules += format == ToolFormat::coder
                 ? parameter_call_rules(function, name, schemas)
                 : call_rules(function, name,
                              format == ToolFormat::llama3 ? "parameters" : "arguments", schemas);
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
