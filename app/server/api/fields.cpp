// SPDX-License-Identifier: MIT
#include "server/api/fields.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/parse_number.h"
#include "server/api/api_error.h"
#include "snapkv/error.h"

namespace snapkv::server {

std::string short_text(const Json& value) {
  if (value.is_object() || value.is_array()) return kind_of(value);
  std::string text = to_text(value);
  constexpr size_t kMost = 60;
  if (text.size() <= kMost) return text;
  size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

Fields::Fields(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
  if (object_.is_object()) return;
  std::string name = path_;
  while (!name.empty() && name.back() == '.') name.pop_back();
  throw bad_request(name, fmt::format("'{}' must be an object, not {}", name, short_text(object_)));
}

void Fields::refuse(const char* field, const std::string& expected, const Json& actual) const {
  throw bad_request(name(field), fmt::format("'{}' must be {}, not {}", name(field), expected,
                                             short_text(actual)));
}

void Fields::refuse(const char* field, const std::string& reason) const {
  throw bad_request(name(field), fmt::format("'{}': {}", name(field), reason));
}

std::vector<std::string> Fields::unread() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : object_.items()) {
    if (!asked_.contains(name)) names.push_back(name);
  }
  return names;
}

const Json* Fields::find(const char* field) const {
  if (path_.empty()) asked_.emplace(field);
  const auto found = object_.find(field);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const Json& Fields::need(const char* field) const {
  if (const Json* value = find(field)) return *value;
  throw bad_request(name(field), fmt::format("'{}' is missing", name(field)));
}

std::optional<bool> Fields::boolean(const char* field) const {
  const Json* value = find(field);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) refuse(field, "true or false", *value);
  return value->get<bool>();
}

std::optional<int64_t> Fields::whole(const char* field, int64_t least, int64_t most) const {
  const Json* value = find(field);
  if (value == nullptr) return std::nullopt;
  const std::string expected = fmt::format("a whole number from {} to {}", least, most);
  // 3.0 counts as whole: some clients send all numbers like that
  if (value->is_number_float()) {
    const double number = value->get<double>();
    if (number != std::floor(number) || std::abs(number) > 9e15) refuse(field, expected, *value);
    const auto whole = static_cast<int64_t>(number);
    if (whole < least || whole > most) refuse(field, expected, *value);
    return whole;
  }
  const bool too_large =
      value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  if (!value->is_number_integer() || too_large) refuse(field, expected, *value);
  const auto whole = value->get<int64_t>();
  if (whole < least || whole > most) refuse(field, expected, *value);
  return whole;
}

std::optional<double> Fields::number(const char* field, double least, double most) const {
  const Json* value = find(field);
  if (value == nullptr) return std::nullopt;
  const std::string expected = fmt::format("a number from {} to {}", least, most);
  if (!value->is_number()) refuse(field, expected, *value);
  const auto number = value->get<double>();
  if (!(number >= least && number <= most)) refuse(field, expected, *value);
  return number;
}

std::optional<std::string> Fields::text(const char* field) const {
  const Json* value = find(field);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) refuse(field, "a string", *value);
  return value->get<std::string>();
}

std::optional<OptionValue> Fields::option(const OptionInfo& info) const {
  using Type = OptionInfo::Type;
  const char* const field = info.name.c_str();
  const Json* value = find(field);
  if (value == nullptr) return std::nullopt;
  std::optional<OptionValue> given;
  if (info.type == Type::boolean) {
    given = *boolean(field);
  } else if (info.type == Type::bytes && value->is_string()) {
    if (const auto n = parse_size(value->get_ref<const std::string&>())) given = *n;
  } else if (info.type == Type::integer || info.type == Type::bytes) {
    given = *whole(field, whole_limit(info.least), whole_limit(info.most));
  } else if (info.type == Type::real) {
    given = *number(field, info.least, info.most);
  } else {
    given = *text(field);
  }
  try {
    if (given) return check_value(info, *given);
  } catch (const Error&) {
    // refused below, in the words of this API
  }
  refuse(field, range_text(info), *value);
}

std::string Fields::needed_text(const char* field) const {
  (void)need(field);
  return *text(field);
}

const Json* Fields::object(const char* field) const {
  const Json* value = find(field);
  if (value != nullptr && !value->is_object()) refuse(field, "an object", *value);
  return value;
}

Fields Fields::inside(const char* field) const {
  static const Json kNone = Json::object();
  const Json* value = object(field);
  return Fields(value != nullptr ? *value : kNone, name(field) + ".");
}

const Json* Fields::array(const char* field) const {
  const Json* value = find(field);
  if (value != nullptr && !value->is_array()) refuse(field, "an array", *value);
  return value;
}

}  // namespace snapkv::server
