// SPDX-License-Identifier: MIT
// Grammars for calls: those that must be made, and those that may follow a text or stand in the
// place of an answer. Marks that are control tokens (Mistral's [TOOL_CALLS]) are in no grammar;
// ToolStream knows calls without them.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "chat/field_error.h"
#include "chat/harmony_prompt.h"
#include "chat/parameter_grammar.h"
#include "chat/tool_schemas.h"
#include "chat/tools.h"
#include "snapkv/grammar.h"

namespace snapkv::chat {
namespace {

constexpr std::string_view kMark = "<tool_call>";
/// Harmony's mark before a name, and the one before arguments, as texts of begun_call_grammar().
constexpr std::string_view kRecipientMark = "to=functions.", kMessageMark = "<|message|>";
/// Calls after a text: models that are small go on and on.
constexpr int kMostFreeCalls = 8;

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
    throw FieldError("tools", fmt::format("'tools': the parameters of {}", e.what()));
  }
}

/// The rule `call` for a call of any function that may be called, and what it needs.
std::string all_call_rules(const Tools& tools, ToolFormat format,
                           std::vector<std::string>& warnings) {
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
    std::string warning =
        schemas.take_warning("tool " + function["name"].get_ref<const std::string&>());
    if (!warning.empty()) warnings.push_back(std::move(warning));
  }
  if (format == ToolFormat::coder) rules += parameter_text_rules();
  return rules + fmt::format("call ::= {}\n", call);
}

/// The rule `root` for harmony's call after its header: the arguments, and before them the name
/// where there are several functions.
std::string addressed_call_rules(const Tools& tools, std::vector<std::string>& warnings) {
  const bool names_function = only_function(tools) == nullptr;
  ToolSchemas schemas;
  std::string rules, call;
  size_t n = 0;
  for (const Json& tool : tools.list) {
    const Json& function = tool["function"];
    if (!tools.function.empty() && function["name"] != tools.function) continue;
    const auto name = function["name"].get<std::string>();
    const std::string rule = fmt::format("arguments-{}", n++);
    call += call.empty() ? "" : " | ";
    if (names_function) call += fmt::format("\"{} json\" ", name);
    call += rule;
    try {
      rules += schemas.rules(function["parameters"], name, rule);
    } catch (const Error& e) {
      throw FieldError("tools", fmt::format("'tools': the parameters of {}", e.what()));
    }
    std::string warning = schemas.take_warning("tool " + name);
    if (!warning.empty()) warnings.push_back(std::move(warning));
  }
  return fmt::format("root ::= {}\n", call) + rules;
}

/// The expression of calls, one after the other, of the rule `call`.
std::string calls_expression(const Tools& tools, ToolFormat format) {
  const char* const more_marked = tools.parallel ? " (\"\\n\" marked)*" : "";
  switch (format) {
    case ToolFormat::hermes:
    case ToolFormat::generic:
    case ToolFormat::coder:
      return fmt::format("marked{}", more_marked);
    case ToolFormat::mistral:
      return fmt::format("\"[\" call{} \"]\"", tools.parallel ? " (\", \" call)*" : "");
    default:
      return "call";
  }
}

/// The rule `marked`, for formats whose calls stand between marks.
std::string marked_rule(ToolFormat format) {
  switch (format) {
    case ToolFormat::hermes:
    case ToolFormat::generic:
      return "marked ::= \"<tool_call>\\n\" call \"\\n</tool_call>\"\n";
    case ToolFormat::coder:
      return "marked ::= \"<tool_call>\\n<function=\" call \"</function>\\n</tool_call>\"\n";
    default:
      return "";
  }
}

/// Text up to the first mark, after which the rule `rest` holds; `text-N`: N bytes of the mark have
/// been written.
std::string text_rules() {
  std::string rules;
  for (size_t n = 0; n < kMark.size(); ++n) {
    const std::string next = n + 1 == kMark.size() ? "rest" : fmt::format("text-{}", n + 1);
    if (n == 0) {
      rules += fmt::format("text-0 ::= [^<]* (\"<\" {})?\n", next);
    } else {
      rules += fmt::format("text-{} ::= (\"{}\" {} | [^<{}] text-0 | \"<\" text-1)?\n", n, kMark[n],
                           next, kMark[n]);
    }
  }
  return rules;
}

}  // namespace

std::string tool_grammar(const Tools& tools, ToolFormat format,
                         std::vector<std::string>& warnings) {
  if (format == ToolFormat::harmony) return addressed_call_rules(tools, warnings);
  return fmt::format("root ::= {}\n", calls_expression(tools, format)) + marked_rule(format) +
         all_call_rules(tools, format, warnings);
}

std::string answer_or_call_grammar(const std::string& answer, const Tools& tools, ToolFormat format,
                                   std::vector<std::string>& warnings) {
  return fmt::format("root ::= answer | {}\n", calls_expression(tools, format)) +
         marked_rule(format) + with_rules_named(answer, "answer") + "\n" +
         all_call_rules(tools, format, warnings);
}

std::string text_or_call_grammar(const Tools& tools, ToolFormat format,
                                 std::vector<std::string>& warnings) {
  const std::string more =
      tools.parallel ? fmt::format(" (\"\\n\" marked){{0,{}}}", kMostFreeCalls - 1) : "";
  return "root ::= text-0\n" + text_rules() +
         fmt::format("rest ::= \"\\n\" call \"\\n</tool_call>\"{}\n", more) + marked_rule(format) +
         all_call_rules(tools, format, warnings);
}

namespace {

/// The rules of a function's arguments; of any object where its schema has no grammar.
std::string begun_argument_rules(const Json& function, const std::string& name,
                                 ToolSchemas& schemas, std::vector<std::string>& notes) {
  const auto called = function["name"].get<std::string>();
  try {
    return schemas.rules(function["parameters"], called, name);
  } catch (const Error& e) {
    notes.push_back(fmt::format("the arguments of {} may be any object: {}", called, e.what()));
    return schemas.rules(Json{{"type", "object"}}, called, name);
  }
}

}  // namespace

std::string begun_call_text(ToolFormat format) {
  return std::string(format == ToolFormat::harmony ? kRecipientMark : kMark);
}

std::string begun_arguments_text(const ArgumentsStart& start) {
  switch (start.after) {
    case ArgumentsStart::After::colon:
      return start.function + ":";
    case ArgumentsStart::After::brace:
      return start.function + "{";
    case ArgumentsStart::After::header:
      return start.function + std::string(kMessageMark);
  }
  return {};
}

std::string begun_call_grammar(const Tools& tools, ToolFormat format,
                               std::vector<std::string>& notes) {
  ToolSchemas schemas;
  std::string rules, calls, names, starts;
  for (size_t i = 0; i < tools.list.size(); ++i) {
    const Json& function = tools.list[i]["function"];
    const auto name = function["name"].get<std::string>();
    const std::string arguments = fmt::format("arguments-{}", i);
    const char* const separator = i == 0 ? "" : " | ";
    names += fmt::format(R"({}"{}")", separator, name);
    calls += fmt::format(R"({}"\"{}\"" gap "," gap "\"arguments\":" gap {})", separator, name,
                         arguments);
    starts +=
        fmt::format(R"({}"{}" (":" gap {} end | {} .*))", separator, name, arguments, arguments);
    if (format == ToolFormat::harmony) {
      starts += fmt::format(R"( | "{}{}" gap {} .*)", name, kMessageMark, arguments);
    }
    try {
      rules += begun_argument_rules(function, arguments, schemas, notes);
    } catch (const Error& e) {
      throw FieldError("tools", fmt::format("'tools': the parameters of {}", e.what()));
    }
  }
  if (format == ToolFormat::hermes) {
    starts += fmt::format(R"( | "{}" gap "{{" gap "\"name\":" gap ({}) end)", kMark, calls);
  }
  if (format == ToolFormat::harmony) {
    starts += fmt::format(R"( | "{}" ({}) ([^a-zA-Z0-9_.-] .*)?)", kRecipientMark, names);
  }
  // between an object's parts, and from the end of a call's arguments on
  return fmt::format("root ::= {}\n", starts) + R"(gap ::= | " " | "\n"{1,2} [ \t]{0,20}
end ::= gap [},] .*
)" + rules;
}

}  // namespace snapkv::chat
