// SPDX-License-Identifier: MIT
// CallSyntax: how the models of a family write calls, as their template asks them to. The table in
// call_syntax.cpp has a row for each format. Everything that depends on a format reads its row:
// ToolStream finds calls in answers, tool_grammar() describes them, write_calls() writes earlier
// ones where a template cannot, and tool_format() chooses the row by the template's source.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "chat/json.h"
#include "chat/tools.h"

namespace snapkv::chat {

/// The tags around a call's parameters, in formats that write them one by one.
struct ParameterTags {
  std::string_view name_begin, name_end;  ///< around the function's name
  std::string_view key_begin, key_end;    ///< around a parameter's name
  /// Stands in key_end instead of `true` where the value is not a string; empty: values do not say.
  std::string_view no_string_end = {};
  std::string_view value_begin = {}, value_end;
  std::string_view end;  ///< after the last parameter
  bool padded = false;   ///< a line break stands before and after each value
};

struct CallSyntax {
  using Text = std::string_view;
  using Texts = std::array<Text, 5>;  // the first ones; empty texts follow

  enum class Body {
    object,      ///< {"name": NAME, "arguments": {...}}
    arguments,   ///< NAME, `after_name`, {...}
    parameters,  ///< NAME and parameters between `tags`
    literals,    ///< NAME{KEY:VALUE,...}, strings between <|"|> (literal_scanner.h)
    python,      ///< NAME(KEY=VALUE, ...)
  };

  ToolFormat format = ToolFormat::none;
  const char* name = "";
  /// A template has this format if its source has all of these texts, or `or_in_template`.
  std::array<Text, 2> in_template = {};
  Text or_in_template = {};
  Body body = Body::object;

  // As models write calls:
  Text first = {}, last = {};                  ///< before the first call, after the last one
  Text before = {}, after = {}, between = {};  ///< before and after each call, between two
  Text after_name = {};                        ///< between name and arguments
  bool numbered = false;                       ///< ":0" follows the name
  Text name_key = "name", arguments_key = "arguments";
  Text id_key = {};  ///< a number before the name, as a text; empty: none
  ParameterTags tags = {};
  bool one_call = false;  ///< an answer has one call at most

  // How they are found in an answer, where line breaks and the like may differ:
  Text opening = {};         ///< begins the calls
  Text call_opening = {};    ///< begins a call of a known function where `opening` is missing
  char bare = 0;             ///< begins the calls at the beginning of an answer; '[' if "{" follows
  Texts marks = {};          ///< mean nothing before and between calls
  Texts name_marks = {};     ///< the same between name and arguments
  Text closing = {};         ///< ends the calls
  bool closes_each = false;  ///< `closing` follows each call, and may be missing
  Text text_name = {};       ///< what stands for the name where text follows, not a call
};

/// The rows of all formats that have one: all but none and harmony.
std::span<const CallSyntax> call_syntaxes();
/// The row of a format; null for those without.
const CallSyntax* find_syntax(ToolFormat format);

/// Calls as models write them. `calls`: [{"function": {"name", "arguments"}}, ...]
std::string write_calls(const CallSyntax& syntax, const Json& calls);

/// The marks of all formats; in some vocabularies they are control tokens.
std::span<const std::string_view> call_marks();

}  // namespace snapkv::chat
