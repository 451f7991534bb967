// SPDX-License-Identifier: MIT
// FoundCall: a complete call in a text, whichever way the model has written it.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "chat/json.h"

namespace snapkv::chat {

/// The schemas of all functions' parameters, by function name.
using Functions = std::map<std::string, Json>;

/// A place in a text: the arguments of a call begin there, as JSON.
struct ArgumentsStart {
  /// After what they stand: the colon of a member of the call's object, their own opening brace,
  /// which follows the name, or the header of a message to the function (harmony.h).
  enum class After { colon, brace, header };
  std::string function;
  After after = After::colon;
};

struct FoundCall {
  std::string name;
  Json arguments = Json::object();
};

/// Whether there is such a function and the arguments fit its schema.
bool is_call(const FoundCall& call, const Functions& functions);

/// The calls that a JSON value stands for: a call, a list of calls, or {"tool_calls": [...]}. A
/// call is {"name": ..., "arguments": {...}}, also with its arguments as a string that holds JSON,
/// with the other usual names of both members, or inside {"function": {...}}. Nothing where a part
/// of the value is not a call of these functions.
std::optional<std::vector<FoundCall>> calls_in(const Json& value, const Functions& functions);

/// Whether `key` may be a member of a call's object, and one that holds the function's name.
bool is_call_key(const std::string& key);
bool is_name_key(const std::string& key);
bool is_arguments_key(const std::string& key);

}  // namespace snapkv::chat
