// SPDX-License-Identifier: MIT
// JSON input and output: reads the conversation for which a template is rendered, and writes values
// for the filter `tojson` as Python's json.dumps does.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/object.h"

namespace snapkv::jinja {

/// The entries of a JSON object as variables. All texts in `messages`, `tools` and `documents` are
/// marked as coming from the conversation, except the roles of messages, which templates put into
/// control tokens. Throws Error{kUsage} if `json` is not a JSON object, for integers beyond 64 bits
/// and for nesting beyond kMaxValueDepth.
DictPtr read_variables(Budget& budget, std::string_view json);

struct JsonStyle {
  bool ascii = false;  // write characters outside ASCII as \u
  bool sort_keys = false;
  std::optional<std::string> indent;  // of one level; if missing, everything is on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

/// Throws for values that JSON cannot express: undefined values, functions.
TextPtr write_json(Budget& budget, const Value& value, const JsonStyle& style);

}  // namespace snapkv::jinja
