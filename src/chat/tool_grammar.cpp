// SPDX-License-Identifier: MIT
// Grammars for calls: those that must be made, and those that may follow a text or stand in the
// place of an answer, in the words of a format's row (call_syntax.h). Marks may be control tokens:
// GrammarVocabulary knows those of call_marks().
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "chat/call_syntax.h"
#include "chat/field_error.h"
#include "chat/harmony_prompt.h"
#include "chat/literal_grammar.h"
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

/// The schema of a function's arguments as the rule `rule`.
std::string argument_rules(const Json& function, const std::string& rule, ToolSchemas& schemas) {
  try {
    return schemas.rules(function["parameters"], function["name"].get<std::string>(), rule);
  } catch (const Error& e) {
    throw FieldError("tools", fmt::format("'tools': the parameters of {}", e.what()));
  }
}

/// Returns the rule `name` for a call that is a JSON object.
std::string object_call_rules(const CallSyntax& syntax, const Json& function,
                              const std::string& name, ToolSchemas& schemas) {
  const std::string rule = name + "-arguments";
  const std::string id = syntax.id_key.empty()
                             ? ""
                             : fmt::format(R"({} [0-9]{{1,3}} "\", " )",
                                           gbnf_literal(fmt::format("\"{}\": \"", syntax.id_key)));
  const std::string head =
      fmt::format(R"("{}": "{}", "{}": )", syntax.name_key,
                  function["name"].get_ref<const std::string&>(), syntax.arguments_key);
  return fmt::format("{} ::= \"{{\" {}{} {} \"}}\"\n", name, id, gbnf_literal(head), rule) +
         argument_rules(function, rule, schemas);
}

/// Returns the rule `name` for a call of one function without what stands around all calls, and the
/// rules of its arguments.
std::string call_rules(const CallSyntax& syntax, const Json& function, const std::string& name,
                       ToolSchemas& schemas) {
  switch (syntax.body) {
    case CallSyntax::Body::object:
      return object_call_rules(syntax, function, name, schemas);
    case CallSyntax::Body::arguments: {
      const std::string rule = name + "-arguments";
      return fmt::format("{} ::= {}{} {} {}\n", name,
                         gbnf_literal(function["name"].get_ref<const std::string&>()),
                         syntax.numbered ? " \":\" [0-9]{1,3}" : "",
                         gbnf_literal(syntax.after_name), rule) +
             argument_rules(function, rule, schemas);
    }
    case CallSyntax::Body::parameters:
      return parameter_call_rules(function, name, syntax.tags, schemas);
    case CallSyntax::Body::literals:
      return literal_call_rules(function, name, LiteralDialect::gemma, schemas);
    case CallSyntax::Body::python:
      return literal_call_rules(function, name, LiteralDialect::python, schemas);
  }
  return {};
}

/// The rules that all calls of a format share.
std::string shared_rules(const CallSyntax& syntax) {
  switch (syntax.body) {
    case CallSyntax::Body::parameters:
      return parameter_text_rules(syntax.tags);
    case CallSyntax::Body::literals:
      return literal_rules(LiteralDialect::gemma);
    default:
      return {};
  }
}

/// The rule `call` for a call of any function that may be called, and what it needs.
std::string all_call_rules(const Tools& tools, const CallSyntax& syntax,
                           std::vector<std::string>& warnings) {
  ToolSchemas schemas;
  std::string rules, call;
  size_t n = 0;
  for (const Json& tool : tools.list) {
    const Json& function = tool["function"];
    if (!tools.function.empty() && function["name"] != tools.function) continue;
    const std::string name = fmt::format("call-{}", n++);
    rules += call_rules(syntax, function, name, schemas);
    call += (call.empty() ? "" : " | ") + name;
    std::string warning =
        schemas.take_warning("tool " + function["name"].get_ref<const std::string&>());
    if (!warning.empty()) warnings.push_back(std::move(warning));
  }
  return rules + shared_rules(syntax) + fmt::format("call ::= {}\n", call);
}

/// In the place of an answer, harmony's models write a call as plain JSON.
constexpr CallSyntax kPlainCalls = {.one_call = true};

const CallSyntax& syntax_for(ToolFormat format) {
  const CallSyntax* found = find_syntax(format);
  return found != nullptr ? *found : kPlainCalls;
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

/// A literal and a space; nothing for an empty text.
std::string literal_before(std::string_view text) {
  return text.empty() ? "" : gbnf_literal(text) + " ";
}

std::string literal_after(std::string_view text) {
  return text.empty() ? "" : " " + gbnf_literal(text);
}

/// Calls, one after the other, of the rule `marked`. The mark of Mistral's lists may be missing.
std::string calls_expression(const Tools& tools, const CallSyntax& syntax) {
  const bool has_more = tools.parallel && !syntax.one_call;
  const bool is_unmarked_list = syntax.bare == '[' && !syntax.first.empty();
  return (is_unmarked_list ? gbnf_literal(syntax.opening) + "? " : "") +
         literal_before(syntax.first) + "marked" +
         (has_more ? fmt::format(" ({}marked)*", literal_before(syntax.between)) : "") +
         literal_after(syntax.last);
}

/// The rule `marked`: a call with what stands around each.
std::string marked_rule(const CallSyntax& syntax) {
  return fmt::format("marked ::= {}call{}\n", literal_before(syntax.before),
                     literal_after(syntax.after));
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
  const CallSyntax& syntax = syntax_for(format);
  return fmt::format("root ::= {}\n", calls_expression(tools, syntax)) + marked_rule(syntax) +
         all_call_rules(tools, syntax, warnings);
}

std::string answer_or_call_grammar(const std::string& answer, const Tools& tools, ToolFormat format,
                                   std::vector<std::string>& warnings) {
  const CallSyntax& syntax = syntax_for(format);
  return fmt::format("root ::= answer | {}\n", calls_expression(tools, syntax)) +
         marked_rule(syntax) + with_rules_named(answer, "answer") + "\n" +
         all_call_rules(tools, syntax, warnings);
}

std::string text_or_call_grammar(const Tools& tools, ToolFormat format,
                                 std::vector<std::string>& warnings) {
  const CallSyntax& syntax = syntax_for(format);
  const std::string more =
      tools.parallel ? fmt::format(" (\"\\n\" marked){{0,{}}}", kMostFreeCalls - 1) : "";
  return "root ::= text-0\n" + text_rules() +
         fmt::format("rest ::= \"\\n\" call \"\\n</tool_call>\"{}\n", more) + marked_rule(syntax) +
         all_call_rules(tools, syntax, warnings);
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
