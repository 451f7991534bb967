// SPDX-License-Identifier: MIT
#include "chat/found_call.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "chat/schema_fit.h"

namespace snapkv::chat {
namespace {

// What models call a call's members: "tool_name" is Command R's, "parameters" Llama 3's, "input"
// Anthropic's.
constexpr std::array<std::string_view, 4> kNameKeys = {"name", "function", "tool_name", "tool"};
constexpr std::array<std::string_view, 4> kArgumentKeys = {"arguments", "parameters", "input",
                                                           "args"};
constexpr std::array<std::string_view, 4> kOtherKeys = {"type", "id", "tool_call_id", "index"};
constexpr std::string_view kListKey = "tool_calls";

template <size_t n>
bool is_one_of(const std::array<std::string_view, n>& keys, const std::string& key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

/// The value as arguments; discarded where it can't be any.
Json arguments_in(const Json& value) {
  Json held = value.is_string() ? parse_held(value.get_ref<const std::string&>()) : value;
  return held.is_object() ? held : Json(Json::value_t::discarded);
}

std::optional<FoundCall> call_in(const Json& object) {
  if (!object.is_object()) return std::nullopt;
  std::optional<std::string> name;
  std::optional<Json> arguments;
  for (const auto& [key, value] : object.items()) {
    if (key == "function" && value.is_object()) {
      const auto inner = value.contains("function") ? std::nullopt : call_in(value);
      if (!inner || name || arguments) return std::nullopt;
      name = inner->name;
      arguments = inner->arguments;
    } else if (is_name_key(key)) {
      if (!value.is_string() || name) return std::nullopt;
      name = value.get<std::string>();
    } else if (is_arguments_key(key)) {
      if (arguments) return std::nullopt;
      arguments = arguments_in(value);
      if (arguments->is_discarded()) return std::nullopt;
    } else if (!is_one_of(kOtherKeys, key)) {
      return std::nullopt;
    }
  }
  if (!name) return std::nullopt;
  return FoundCall{*name, arguments.value_or(Json::object())};
}

}  // namespace

bool is_name_key(const std::string& key) { return is_one_of(kNameKeys, key); }

bool is_arguments_key(const std::string& key) { return is_one_of(kArgumentKeys, key); }

bool is_call_key(const std::string& key) {
  return is_name_key(key) || is_arguments_key(key) || is_one_of(kOtherKeys, key) ||
         key == kListKey;
}

bool is_call(const FoundCall& call, const Functions& functions) {
  const auto function = functions.find(call.name);
  return function != functions.end() && fits_schema(call.arguments, function->second);
}

std::optional<std::vector<FoundCall>> calls_in(const Json& value, const Functions& functions) {
  const Json* list = &value;
  if (value.is_object() && value.size() == 1 && value.begin().key() == kListKey) {
    list = &value.begin().value();
  }
  std::vector<FoundCall> calls;
  const auto add = [&](const Json& one) {
    auto call = call_in(one);
    if (!call || !is_call(*call, functions)) return false;
    calls.push_back(std::move(*call));
    return true;
  };
  const bool all = list->is_array() ? std::all_of(list->begin(), list->end(), add) : add(*list);
  if (!all || calls.empty()) return std::nullopt;
  return calls;
}

}  // namespace snapkv::chat
