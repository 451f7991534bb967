// SPDX-License-Identifier: MIT
// write_calls(): calls in the words of a format, as its models write them.
#include <nlohmann/json.hpp>
#include <string>

#include "chat/call_syntax.h"
#include "chat/literal_scanner.h"

namespace snapkv::chat {
namespace {

using WrittenBody = CallSyntax::Body;

/// JSON with spaces after commas and colons, as most models have seen it.
void write_json(const Json& value, std::string& text) {
  if (value.is_object() || value.is_array()) {
    text += value.is_object() ? '{' : '[';
    bool is_first = true;
    for (const auto& [key, member] : value.items()) {
      if (!is_first) text += ", ";
      is_first = false;
      if (value.is_object()) text += to_text(Json(key)) + ": ";
      write_json(member, text);
    }
    text += value.is_object() ? '}' : ']';
  } else {
    text += to_text(value);
  }
}

/// Gemma's literals: names without quotes, texts between marks.
void write_literal(const Json& value, std::string& text) {
  if (value.is_string()) {
    text += LiteralScanner::kQuote;
    text += value.get_ref<const std::string&>();
    text += LiteralScanner::kQuote;
  } else if (value.is_object() || value.is_array()) {
    text += value.is_object() ? '{' : '[';
    bool is_first = true;
    for (const auto& [key, member] : value.items()) {
      if (!is_first) text += ',';
      is_first = false;
      if (value.is_object()) text += key + ":";
      write_literal(member, text);
    }
    text += value.is_object() ? '}' : ']';
  } else {
    text += to_text(value);
  }
}

void write_python(const Json& arguments, std::string& text) {
  text += '(';
  bool is_first = true;
  for (const auto& [key, value] : arguments.items()) {
    if (!is_first) text += ", ";
    is_first = false;
    text += key + "=";
    if (value.is_boolean()) {
      text += value.get<bool>() ? "True" : "False";
    } else if (value.is_null()) {
      text += "None";
    } else {
      write_json(value, text);
    }
  }
  text += ')';
}

void write_parameters(const ParameterTags& tags, const std::string& name, const Json& arguments,
                      std::string& text) {
  const std::string pad = tags.padded ? "\n" : "";
  text += std::string(tags.name_begin) + name + std::string(tags.name_end) + "\n";
  for (const auto& [key, value] : arguments.items()) {
    const bool says_so = !value.is_string() && !tags.no_string_end.empty();
    text += std::string(tags.key_begin) + key +
            std::string(says_so ? tags.no_string_end : tags.key_end);
    if (!tags.value_begin.empty()) text += "\n" + std::string(tags.value_begin);
    text += pad;
    if (value.is_string()) {
      text += value.get_ref<const std::string&>();
    } else {
      write_json(value, text);
    }
    text += pad + std::string(tags.value_end) + "\n";
  }
  text += tags.end;
}

void write_body(const CallSyntax& syntax, const Json& function, size_t index, std::string& text) {
  const auto& name = function["name"].get_ref<const std::string&>();
  const Json& arguments = function["arguments"];
  switch (syntax.body) {
    case WrittenBody::object:
      text += '{';
      if (!syntax.id_key.empty()) {
        text += "\"" + std::string(syntax.id_key) + "\": \"" + std::to_string(index) + "\", ";
      }
      text += "\"" + std::string(syntax.name_key) + "\": " + to_text(Json(name)) + ", \"" +
              std::string(syntax.arguments_key) + "\": ";
      write_json(arguments, text);
      text += '}';
      break;
    case WrittenBody::arguments:
      text += name;
      if (syntax.numbered) text += ":" + std::to_string(index);
      text += syntax.after_name;
      write_json(arguments, text);
      break;
    case WrittenBody::parameters:
      write_parameters(syntax.tags, name, arguments, text);
      break;
    case WrittenBody::literals:
      text += name;
      write_literal(arguments, text);
      break;
    case WrittenBody::python:
      text += name;
      write_python(arguments, text);
      break;
  }
}

}  // namespace

std::string write_calls(const CallSyntax& syntax, const Json& calls) {
  std::string text(syntax.first);
  for (size_t i = 0; i < calls.size(); ++i) {
    if (i > 0) text += syntax.between;
    text += syntax.before;
    write_body(syntax, calls[i]["function"], i, text);
    text += syntax.after;
  }
  return text + std::string(syntax.last);
}

}  // namespace snapkv::chat
