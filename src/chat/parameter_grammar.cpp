// SPDX-License-Identifier: MIT
// A string may be any text that does not end its parameter; of its schema, only `enum` and `const`
// are respected. Other values are JSON that matches their schemas.
#include "chat/parameter_grammar.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "chat/field_error.h"
#include "chat/parameter_types.h"
#include "snapkv/grammar.h"

namespace snapkv::chat {
namespace {

constexpr std::string_view kEnd = "</parameter>";

/// Returns a value of an enum as it is written between the tags.
std::string bare_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : to_text(value);
}

/// Returns a parameter's schema as a document of its own, with the definitions that it refers to.
Json with_definitions(const Json& schema, const Json& parameters) {
  Json document = schema;
  if (to_text(schema).find("\"$ref\"") == std::string::npos) return document;
  for (const char* keyword : {"$defs", "definitions"}) {
    if (parameters.contains(keyword) && !document.contains(keyword)) {
      document[keyword] = parameters[keyword];
    }
  }
  return document;
}

/// Returns the rule `name` for a parameter's value and the tag that ends it.
std::string value_rule(const Json& schema, const Json& parameters, const std::string& name,
                       ToolSchemas& schemas) {
  const Json& plain = resolved(schema, parameters);
  std::vector<std::string> literals;
  const auto add_literal = [&](const Json& value) {
    literals.push_back(gbnf_literal(bare_text(value)));
    schemas.count_made(literals.back().size());
  };
  if (plain.is_object() && plain.contains("const")) {
    add_literal(plain["const"]);
  } else if (plain.is_object() && plain.contains("enum") && plain["enum"].is_array()) {
    for (const Json& value : plain["enum"]) add_literal(value);
  }
  const std::string end = gbnf_literal("\n" + std::string(kEnd));
  if (!literals.empty()) {
    return fmt::format("{} ::= ({}) {}\n", name, fmt::join(literals, " | "), end);
  }
  if ((schema_types(schema, parameters) & kString) != 0) {
    return fmt::format("{} ::= parameter-text-line\n", name);
  }
  const std::string json = name + "-json";
  return fmt::format("{} ::= {} {}\n", name, json, end) +
         schemas.rules(with_definitions(schema, parameters), "schema", json);
}

std::vector<std::string> required_names(const Json& parameters) {
  std::vector<std::string> names;
  const auto required = parameters.find("required");
  if (required == parameters.end() || !required->is_array()) return names;
  for (const Json& name : *required) {
    if (name.is_string()) names.push_back(name.get<std::string>());
  }
  return names;
}

std::vector<std::string> names_of(const Json& parameters,
                                  const std::vector<std::string>& required) {
  std::vector<std::string> names;
  const auto properties = parameters.find("properties");
  if (properties != parameters.end() && properties->is_object()) {
    for (const auto& property : properties->items()) names.push_back(property.key());
  }
  std::set<std::string> known(names.begin(), names.end());
  for (const std::string& name : required) {
    if (known.insert(name).second) names.push_back(name);
  }
  return names;
}

}  // namespace

std::string parameter_call_rules(const Json& function, const std::string& name,
                                 ToolSchemas& schemas) {
  const auto called = function["name"].get<std::string>();
  const Json& parameters = resolved(function["parameters"], function["parameters"]);
  const auto refuse = [&](const std::string& why) {
    return FieldError("tools", fmt::format("'tools': the parameters of {}: {}", called, why));
  };
  for (const char* keyword : {"anyOf", "oneOf", "allOf"}) {
    if (!parameters.contains(keyword)) continue;
    throw refuse(
        fmt::format("this model writes parameters one by one, so that 'tool_choice' needs "
                    "their names in 'properties', not '{}'",
                    keyword));
  }
  const std::vector<std::string> required = required_names(parameters);
  const std::set<std::string> needed(required.begin(), required.end());
  std::string call = gbnf_literal(called + ">\n"), rules;
  int n = 0;
  for (const std::string& key : names_of(parameters, required)) {
    if (key.find_first_of(">\n") != std::string::npos) {
      throw refuse(
          fmt::format("{} can't be written in this model's format of calls", to_text(Json(key))));
    }
    const std::string value = fmt::format("{}-{}", name, n++);
    const std::string written =
        fmt::format(" ({} {} \"\\n\"){}", gbnf_literal(fmt::format("<parameter={}>\n", key)), value,
                    needed.contains(key) ? "" : "?");
    try {
      schemas.count_made(written.size());
      rules +=
          value_rule(parameter_schema(parameters, key), function["parameters"], value, schemas);
    } catch (const Error& e) {
      throw refuse(fmt::format("'{}': {}", key, e.what()));
    }
    call += written;
  }
  return fmt::format("{} ::= {}\n", name, call) + rules;
}

// The part of "</parameter>" read so far decides what may follow: at the beginning of a line the
// complete tag ends the text; elsewhere it is not allowed, since it would be taken for the end.
std::string parameter_text_rules() {
  std::string rules =
      "parameter-text ::= [^\\n<] parameter-text | \"\\n\" parameter-text-line | "
      "\"<\" parameter-text-in1\n"
      "parameter-text-line ::= [^\\n<] parameter-text | \"\\n\" parameter-text-line | "
      "\"<\" parameter-text-end1\n";
  for (const char* where : {"in", "end"}) {
    for (size_t n = 1; n < kEnd.size(); ++n) {
      std::string next = fmt::format("\"{}\" parameter-text-{}{} | ", kEnd[n], where, n + 1);
      if (n + 1 == kEnd.size()) next = where == std::string("end") ? "\">\" | " : "";
      rules += fmt::format(
          "parameter-text-{}{} ::= {}[^\\n<{}] parameter-text | \"\\n\" parameter-text-line | "
          "\"<\" parameter-text-in1\n",
          where, n, next, kEnd[n]);
    }
  }
  return rules;
}

}  // namespace snapkv::chat
