// SPDX-License-Identifier: MIT
// JSON in and out: the conversation that a template is rendered for, and its filter `tojson`, which
// writes as Python's json.dumps does.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/object.h"

namespace snapkv::jinja {

/// The entries of a JSON object as variables. Texts anywhere in `messages`, `tools` and `documents`
/// are marked as coming from the conversation, but for the roles of messages, which templates put
/// into control tokens. Throws Error{kUsage} for what is no JSON object, for integers beyond 64
/// bits and for nesting beyond kMaxValueDepth.
DictPtr read_variables(Budget& budget, std::string_view json);

struct JsonStyle {
  bool ascii = false;  // characters beyond ASCII as \u
  bool sort_keys = false;
  std::optional<std::string> indent;  // of one level; none: all in one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

/// Throws for values that have no JSON: undefined ones, functions.
TextPtr write_json(Budget& budget, const Value& value, const JsonStyle& style);

}  // namespace snapkv::jinja
