// SPDX-License-Identifier: MIT
// In Gemma's dialect a text may be any that does not end; of its schema, only `enum` and `const`
// are respected. Objects have the members of `properties`. All other values are JSON that matches
// their schemas; in Python, True, False and None stand for JSON's words where nothing else is
// allowed.
#include "chat/literal_grammar.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "chat/literal_scanner.h"
#include "chat/parameter_grammar.h"
#include "chat/parameter_types.h"
#include "snapkv/grammar.h"

namespace snapkv::chat {
namespace {

constexpr int kMostLiteralNesting = 16;  // deeper objects and lists may be any
constexpr JsonTypes kScalars = kInteger | kFraction | kBoolean | kNull;

bool is_identifier(const std::string& key) {
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  return !key.empty() && std::all_of(key.begin(), key.end(), is_word);
}

/// The rules of one function's arguments.
class LiteralRules {
 public:
  LiteralRules(const Json& function, LiteralDialect dialect, ToolSchemas& schemas)
      : called_(function["name"].get<std::string>()),
        document_(function["parameters"]),
        is_gemma_(dialect == LiteralDialect::gemma),
        schemas_(schemas) {}

  /// The rule `name` for the members of an object, without its brackets.
  void add_members(const Json& schema, const std::string& name, int nesting) {
    const std::vector<ParameterName> names = parameter_names(schema, called_);
    const char* const assign = is_gemma_ ? ":" : "=";
    const char* const comma = is_gemma_ ? "\",\"" : "\", \"";
    // `name`-I: from member I on, where none stands before; `name`-I-more: where one does
    for (size_t i = 0; i < names.size(); ++i) {
      const auto& [key, is_required] = names[i];
      if (!(is_gemma_ ? is_gemma_key(key) : is_identifier(key))) {
        throw parameter_error(
            called_,
            fmt::format("{} can't be written in this model's format of calls", to_text(Json(key))));
      }
      const std::string value = fmt::format("{}-{}-value", name, i);
      add_value(parameter_schema(schema, key), value, nesting + 1);
      const std::string member =
          fmt::format("{} {} {}-{}-more", gbnf_literal(key + assign), value, name, i + 1);
      const std::string rest = fmt::format(" | {}-{}", name, i + 1);
      add(fmt::format("{}-{} ::= {}{}\n", name, i, member, is_required ? "" : rest));
      add(fmt::format("{}-{}-more ::= {} {}{}\n", name, i, comma, member,
                      is_required ? "" : rest + "-more"));
    }
    add(fmt::format("{0}-{1} ::= \"\"\n{0}-{1}-more ::= \"\"\n", name, names.size()));
    add(fmt::format("{0} ::= {0}-0\n", name));
  }

  std::string take() { return std::move(rules_); }

 private:
  static bool is_gemma_key(const std::string& key) {
    return !key.empty() && key.find_first_of(":{}[],<\"\n") == std::string::npos;
  }

  void add(const std::string& rule) {
    schemas_.count_made(rule.size());
    rules_ += rule;
  }

  /// The rule `name` for a value of this schema.
  void add_value(const Json& given, const std::string& name, int nesting) {
    const Json& schema = resolved(given, document_);
    const JsonTypes types = schema_types(given, document_);
    if (!is_gemma_) {
      add_python_value(given, types, name);
    } else if (const auto literals = literals_in(schema); !literals.empty()) {
      add(fmt::format("{} ::= {}\n", name, fmt::join(literals, " | ")));
    } else if (types == kString) {
      add(fmt::format("{} ::= literal-string\n", name));
    } else if ((types & ~kScalars) == 0) {
      rules_ += schemas_.rules(with_definitions(given, document_), "schema", name);
    } else if (types == kObject && has_properties(schema) && nesting < kMostLiteralNesting) {
      add(fmt::format("{0} ::= \"{{\" {0}-members \"}}\"\n", name));
      add_members(schema, name + "-members", nesting);
    } else if (types == kArray && schema.contains("items") && nesting < kMostLiteralNesting) {
      add(fmt::format("{0} ::= \"[\" ({0}-item (\",\" {0}-item)*)? \"]\"\n", name));
      add_value(schema["items"], name + "-item", nesting + 1);
    } else if (types == kObject) {
      add(fmt::format("{} ::= literal-object\n", name));
    } else if (types == kArray) {
      add(fmt::format("{} ::= literal-list\n", name));
    } else {
      add(fmt::format("{} ::= literal-value\n", name));
    }
  }

  void add_python_value(const Json& schema, JsonTypes types, const std::string& name) {
    if (types == kBoolean) {
      add(fmt::format("{} ::= \"True\" | \"False\"\n", name));
    } else if (types == kNull) {
      add(fmt::format("{} ::= \"None\"\n", name));
    } else {
      rules_ += schemas_.rules(with_definitions(schema, document_), "schema", name);
    }
  }

  static bool has_properties(const Json& schema) {
    const auto properties = schema.find("properties");
    return properties != schema.end() && properties->is_object() && !properties->empty();
  }

  /// The values of `enum` and `const` that are not objects or lists.
  static std::vector<std::string> literals_in(const Json& schema) {
    std::vector<std::string> all;
    const auto add = [&](const Json& value) {
      if (value.is_structured()) return;
      const std::string quote(LiteralScanner::kQuote);
      all.push_back(gbnf_literal(value.is_string() ? quote + value.get<std::string>() + quote
                                                   : to_text(value)));
    };
    if (!schema.is_object()) return all;
    if (schema.contains("const")) {
      add(schema["const"]);
    } else if (schema.contains("enum") && schema["enum"].is_array()) {
      for (const Json& value : schema["enum"]) add(value);
    }
    return all;
  }

  const std::string called_;
  const Json& document_;
  const bool is_gemma_;
  ToolSchemas& schemas_;
  std::string rules_;
};

}  // namespace

std::string literal_call_rules(const Json& function, const std::string& name,
                               LiteralDialect dialect, ToolSchemas& schemas) {
  const bool is_gemma = dialect == LiteralDialect::gemma;
  const auto called = function["name"].get<std::string>();
  LiteralRules rules(function, dialect, schemas);
  try {
    rules.add_members(resolved(function["parameters"], function["parameters"]), name + "-members",
                      0);
  } catch (const FieldError&) {
    throw;
  } catch (const Error& e) {
    throw parameter_error(called, e.what());
  }
  return fmt::format("{} ::= {} {}-members {}\n", name,
                     gbnf_literal(called + (is_gemma ? "{" : "(")), name,
                     is_gemma ? "\"}\"" : "\")\"") +
         rules.take();
}

std::string literal_rules(LiteralDialect dialect) {
  if (dialect == LiteralDialect::python) return "";
  return R"(literal-string ::= )" + gbnf_literal(LiteralScanner::kQuote) + R"( literal-text-0
literal-number ::= "-"? ("0" | [1-9] [0-9]{0,17}) ("." [0-9]{1,17})?
literal-value ::= literal-string | literal-number | "true" | "false" | "null" | literal-object | literal-list
literal-member ::= [a-zA-Z_] [a-zA-Z0-9_-]{0,63} ":" literal-value
literal-object ::= "{" (literal-member ("," literal-member)*)? "}"
literal-list ::= "[" (literal-value ("," literal-value)*)? "]"
)" + marked_text_rules("literal-text", LiteralScanner::kQuote);
}

}  // namespace snapkv::chat
