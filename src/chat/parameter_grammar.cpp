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

/// Returns a value of an enum as it is written between the tags.
std::string bare_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : to_text(value);
}

/// The values of `enum` or `const` as they are written between the tags.
std::vector<std::string> literal_texts(const Json& schema) {
  std::vector<std::string> texts;
  if (!schema.is_object()) return texts;
  if (schema.contains("const")) {
    texts.push_back(bare_text(schema["const"]));
  } else if (schema.contains("enum") && schema["enum"].is_array()) {
    for (const Json& value : schema["enum"]) texts.push_back(bare_text(value));
  }
  return texts;
}

/// Returns the rule `name` for a parameter's value and the tag that ends it.
std::string value_rule(const Json& schema, const Json& parameters, const std::string& name,
                       const ParameterTags& tags, ToolSchemas& schemas) {
  std::vector<std::string> literals;
  for (const std::string& text : literal_texts(resolved(schema, parameters))) {
    literals.push_back(gbnf_literal(text));
    schemas.count_made(literals.back().size());
  }
  const std::string end = gbnf_literal((tags.padded ? "\n" : "") + std::string(tags.value_end));
  if (!literals.empty()) {
    return fmt::format("{} ::= ({}) {}\n", name, fmt::join(literals, " | "), end);
  }
  if ((schema_types(schema, parameters) & kString) != 0) {
    return fmt::format("{} ::= parameter-text-{}\n", name, tags.padded ? "line" : "0");
  }
  const std::string json = name + "-json";
  return fmt::format("{} ::= {} {}\n", name, json, end) +
         schemas.rules(with_definitions(schema, parameters), "schema", json);
}

/// What stands between a parameter's name and its value.
std::string key_end(const Json& schema, const Json& parameters, const ParameterTags& tags) {
  if (tags.no_string_end.empty() || (schema_types(schema, parameters) & kString) != 0) {
    return std::string(tags.key_end);
  }
  return std::string(tags.no_string_end);
}

/// The line breaks of the format; GLM's models write none, or one between tags.
const char* gap_of(const ParameterTags& tags) {
  return tags.name_begin.empty() ? "\"\\n\"?" : "\"\\n\"";
}

/// The expression of a parameter, whose value is the rule `value`.
std::string parameter_expression(const std::string& key, const std::string& end,
                                 const std::string& value, const ParameterTags& tags) {
  std::string text =
      gbnf_literal(std::string(tags.key_begin) + key + end + (tags.padded ? "\n" : ""));
  if (!tags.value_begin.empty()) {
    text += fmt::format(" {} {}", gap_of(tags), gbnf_literal(tags.value_begin));
  }
  return fmt::format("({} {} {})", text, value, gap_of(tags));
}

/// The characters of a text in UTF-8.
std::vector<std::string> characters_of(std::string_view text) {
  std::vector<std::string> all;
  for (const char c : text) {
    if (all.empty() || (static_cast<unsigned char>(c) & 0xc0) != 0x80) all.emplace_back();
    all.back() += c;
  }
  return all;
}

}  // namespace

FieldError parameter_error(const std::string& called, const std::string& why) {
  return FieldError("tools", fmt::format("'tools': the parameters of {}: {}", called, why));
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

std::vector<ParameterName> parameter_names(const Json& parameters, const std::string& called) {
  for (const char* keyword : {"anyOf", "oneOf", "allOf"}) {
    if (!parameters.contains(keyword)) continue;
    throw parameter_error(
        called, fmt::format("this model writes parameters one by one, so that 'tool_choice' needs "
                            "their names in 'properties', not '{}'",
                            keyword));
  }
  std::set<std::string> needed, known;
  std::vector<ParameterName> names;
  const auto required = parameters.find("required");
  const bool has_required = required != parameters.end() && required->is_array();
  for (const Json& name : has_required ? *required : Json::array()) {
    if (name.is_string()) needed.insert(name.get<std::string>());
  }
  const auto add = [&](const std::string& name) {
    if (known.insert(name).second) names.push_back({name, needed.contains(name)});
  };
  const auto properties = parameters.find("properties");
  if (properties != parameters.end() && properties->is_object()) {
    for (const auto& property : properties->items()) add(property.key());
  }
  for (const Json& name : has_required ? *required : Json::array()) {
    if (name.is_string()) add(name.get<std::string>());
  }
  return names;
}

std::string parameter_call_rules(const Json& function, const std::string& name,
                                 const ParameterTags& tags, ToolSchemas& schemas) {
  const auto called = function["name"].get<std::string>();
  const Json& parameters = resolved(function["parameters"], function["parameters"]);
  const std::string head = std::string(tags.name_begin) + called + std::string(tags.name_end);
  std::string call = fmt::format("{} {}", gbnf_literal(head), gap_of(tags)), rules;
  const std::string marks = "\n" + std::string(tags.key_end.substr(0, 1));
  int n = 0;
  for (const auto& [key, is_required] : parameter_names(parameters, called)) {
    if (key.find_first_of(marks) != std::string::npos) {
      throw parameter_error(called, fmt::format("{} can't be written in this model's format of "
                                                "calls",
                                                to_text(Json(key))));
    }
    const std::string value = fmt::format("{}-{}", name, n++);
    const Json& schema = parameter_schema(parameters, key);
    const std::string written =
        " " +
        parameter_expression(key, key_end(schema, function["parameters"], tags), value, tags) +
        (is_required ? "" : "?");
    try {
      schemas.count_made(written.size());
      rules += value_rule(schema, function["parameters"], value, tags, schemas);
    } catch (const Error& e) {
      throw parameter_error(called, fmt::format("'{}': {}", key, e.what()));
    }
    call += written;
  }
  return fmt::format("{} ::= {} {}\n", name, call, gbnf_literal(tags.end)) + rules;
}

std::string marked_text_rules(const std::string& name, std::string_view mark) {
  const std::vector<std::string> characters = characters_of(mark);
  const std::string first = characters[0];
  std::string rules =
      fmt::format("{}-0 ::= [^{}]* {} {}-1\n", name, first, gbnf_literal(first), name);
  for (size_t n = 1; n < characters.size(); ++n) {
    const std::string& next = characters[n];
    const std::string set = next == "]" || next == "\\" || next == "^" ? "\\" + next : next;
    const std::string rest = n + 1 == characters.size() ? "" : fmt::format(" {}-{}", name, n + 1);
    rules += fmt::format("{}-{} ::= {}{} | [^{}{}] {}-0 | {} {}-1\n", name, n, gbnf_literal(next),
                         rest, first, set, name, gbnf_literal(first), name);
  }
  return rules;
}

namespace {

// The part of the tag read so far decides what may follow: at the beginning of a line the
// complete tag ends the text; elsewhere it is not allowed, since it would be taken for the end.
std::string padded_text_rules(std::string_view tag) {
  std::string rules =
      "parameter-text ::= [^\\n<] parameter-text | \"\\n\" parameter-text-line | "
      "\"<\" parameter-text-in1\n"
      "parameter-text-line ::= [^\\n<] parameter-text | \"\\n\" parameter-text-line | "
      "\"<\" parameter-text-end1\n";
  for (const char* where : {"in", "end"}) {
    for (size_t n = 1; n < tag.size(); ++n) {
      std::string next = fmt::format("\"{}\" parameter-text-{}{} | ", tag[n], where, n + 1);
      if (n + 1 == tag.size()) next = where == std::string("end") ? "\">\" | " : "";
      rules += fmt::format(
          "parameter-text-{}{} ::= {}[^\\n<{}] parameter-text | \"\\n\" parameter-text-line | "
          "\"<\" parameter-text-in1\n",
          where, n, next, tag[n]);
    }
  }
  return rules;
}

}  // namespace

std::string parameter_text_rules(const ParameterTags& tags) {
  return tags.padded ? padded_text_rules(tags.value_end)
                     : marked_text_rules("parameter-text", tags.value_end);
}

}  // namespace snapkv::chat
