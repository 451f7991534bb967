// SPDX-License-Identifier: MIT
#include "chat/parameter_types.h"

#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "chat/text_parts.h"

namespace snapkv::chat {
namespace {

// Limits for nested references and alternatives, and for steps; beyond them all types are possible.
constexpr int kMostSchemaNesting = 32;
constexpr size_t kMostSteps = 100'000;

constexpr std::array<std::pair<std::string_view, JsonTypes>, 7> kNames = {{
    {"string", kString},
    {"integer", kInteger},
    {"number", kInteger | kFraction},
    {"boolean", kBoolean},
    {"null", kNull},
    {"object", kObject},
    {"array", kArray},
}};

JsonTypes named_type(const Json& name) {
  for (const auto& [known, types] : kNames) {
    if (name == known) return types;
  }
  return kAllTypes;
}

}  // namespace

JsonTypes types_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::string:
      return kString;
    case Json::value_t::boolean:
      return kBoolean;
    case Json::value_t::null:
      return kNull;
    case Json::value_t::object:
      return kObject;
    case Json::value_t::array:
      return kArray;
    case Json::value_t::number_float: {  // JSON schemas count 5.0 as a whole number
      const double number = value.get<double>();
      return number == std::floor(number) ? kInteger | kFraction : kFraction;
    }
    default:
      return kInteger;
  }
}

namespace {

/// Returns null if the target of the reference does not exist.
const Json* referred(const Json& reference, const Json& document) {
  if (!reference.is_string()) return nullptr;
  const auto& text = reference.get_ref<const std::string&>();
  if (!text.starts_with("#/")) return nullptr;
  try {
    return &document.at(Json::json_pointer(text.substr(1)));
  } catch (const Json::exception&) {
    return nullptr;
  }
}

/// Finds the types within one document. Each reference is followed only once: schemas may refer to
/// each other and to themselves, from several alternatives each.
class TypeFinder {
 public:
  explicit TypeFinder(const Json& document) : document_(document) {}

  JsonTypes within(const Json& schema, int nesting = 0) {
    if (!schema.is_object() || nesting == kMostSchemaNesting || !spend(schema.size()))
      return kAllTypes;
    JsonTypes types = kAllTypes;
    const auto nested = [&](const Json& each) { return within(each, nesting + 1); };
    for (const auto& [keyword, value] : schema.items()) {
      if (keyword == "type") {
        types &= value.is_array() ? any_of(value, named_type) : named_type(value);
      } else if (keyword == "enum" && value.is_array()) {
        types &= any_of(value, types_of);
      } else if (keyword == "const") {
        types &= types_of(value);
      } else if ((keyword == "anyOf" || keyword == "oneOf") && value.is_array()) {
        types &= any_of(value, nested);
      } else if (keyword == "allOf" && value.is_array()) {
        for (const Json& each : value) types &= nested(each);
      } else if (keyword == "$ref" && value.is_string()) {
        types &= of_reference(value, nesting + 1);
      }
    }
    return types == 0 ? kAllTypes : types;
  }

 private:
  bool spend(size_t n) {
    n_steps_ += n + 1;
    return n_steps_ <= kMostSteps;
  }

  template <typename Of>
  JsonTypes any_of(const Json& list, const Of& of) {
    if (!spend(list.size())) return kAllTypes;
    JsonTypes any = 0;
    for (const Json& each : list) any |= of(each);
    return any;
  }

  JsonTypes of_reference(const Json& reference, int nesting) {
    const auto [known, is_new] = references_.try_emplace(reference.get<std::string>(), kAllTypes);
    if (!is_new) return known->second;  // kAllTypes while it is being followed
    if (const Json* target = referred(reference, document_)) {
      known->second = within(*target, nesting);
    }
    return known->second;
  }

  const Json& document_;
  std::map<std::string, JsonTypes> references_;
  size_t n_steps_ = 0;
};

/// Trims white space, and replaces Python's words by JSON's.
std::string json_spelling(const std::string& text) {
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string::npos) return "";
  const std::string word = text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
  if (word == "True") return "true";
  if (word == "False") return "false";
  if (word == "None") return "null";
  return word;
}

}  // namespace

JsonTypes schema_types(const Json& schema, const Json& document) {
  return TypeFinder(document).within(schema);
}

const Json& resolved(const Json& schema, const Json& document) {
  const Json* at = &schema;
  for (int i = 0; i < kMostSchemaNesting && at->is_object() && at->contains("$ref"); ++i) {
    const Json* target = referred((*at)["$ref"], document);
    if (target == nullptr) break;
    at = target;
  }
  return *at;
}

const Json& parameter_schema(const Json& parameters, const std::string& name) {
  static const Json kAnything = true;
  const auto properties = parameters.find("properties");
  if (properties == parameters.end() || !properties->is_object()) return kAnything;
  const auto found = properties->find(name);
  return found == properties->end() ? kAnything : *found;
}

std::string typed_value(const std::string& text, JsonTypes types) {
  if (types != kString) {
    std::string spelling = json_spelling(text);
    const Json value = parse_held(spelling);
    if (!value.is_discarded() && !value.is_string() && (types & types_of(value)) != 0) {
      return spelling;
    }
  }
  return to_text(Json(text));
}

}  // namespace snapkv::chat
