// SPDX-License-Identifier: MIT
#include "text/grammar/schema_merge.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"

namespace snapkv::grammar {
namespace {

constexpr std::array<std::string_view, 7> kTypes = {"null",   "boolean", "object", "array",
                                                    "number", "string",  "integer"};

constexpr auto kSupported = std::to_array<std::string_view>({"$ref",
                                                             "allOf",
                                                             "anyOf",
                                                             "oneOf",
                                                             "type",
                                                             "enum",
                                                             "const",
                                                             "properties",
                                                             "required",
                                                             "additionalProperties",
                                                             "patternProperties",
                                                             "propertyNames",
                                                             "minProperties",
                                                             "maxProperties",
                                                             "unevaluatedProperties",
                                                             "unevaluatedItems",
                                                             "items",
                                                             "prefixItems",
                                                             "minItems",
                                                             "maxItems",
                                                             "uniqueItems",
                                                             "additionalItems",
                                                             "minLength",
                                                             "maxLength",
                                                             "pattern",
                                                             "format",
                                                             "minimum",
                                                             "maximum",
                                                             "exclusiveMinimum",
                                                             "exclusiveMaximum",
                                                             "multipleOf",
                                                             "nullable"});

constexpr auto kUnsupported = std::to_array<std::string_view>(
    {"not", "if", "then", "else", "dependentSchemas", "dependentRequired", "dependencies",
     "contains", "$dynamicRef", "$recursiveRef"});

template <typename Names>
bool among(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The types that keywords are about, for a schema without `type`.
struct TypeOfKeyword {
  std::string_view keyword, type;
};
constexpr std::array<TypeOfKeyword, 22> kTypeOfKeyword = {{{"properties", "object"},
                                                           {"required", "object"},
                                                           {"additionalProperties", "object"},
                                                           {"patternProperties", "object"},
                                                           {"propertyNames", "object"},
                                                           {"minProperties", "object"},
                                                           {"maxProperties", "object"},
                                                           {"unevaluatedProperties", "object"},
                                                           {"items", "array"},
                                                           {"prefixItems", "array"},
                                                           {"minItems", "array"},
                                                           {"maxItems", "array"},
                                                           {"uniqueItems", "array"},
                                                           {"minLength", "string"},
                                                           {"maxLength", "string"},
                                                           {"pattern", "string"},
                                                           {"format", "string"},
                                                           {"minimum", "number"},
                                                           {"maximum", "number"},
                                                           {"exclusiveMinimum", "number"},
                                                           {"exclusiveMaximum", "number"},
                                                           {"multipleOf", "number"}}};

void check_types(const Schema& type, const std::string& place) {
  if (!type.is_array() || type.size() <= kTypes.size()) return;
  fail(ErrorCode::kUsage, "{}: type is a list of {}; there are {} types", place, type.size(),
       kTypes.size());
}

/// The number of values in `value`, including itself.
size_t n_values(const Schema& value) {
  size_t n = 1;
  if (value.is_structured()) {
    for (const Schema& each : value) n += n_values(each);
  }
  return n;
}

Schema merged_types(const Schema& a, const Schema& b, const std::string& place) {
  check_types(a, place);
  check_types(b, place);
  const auto list = [](const Schema& type) { return type.is_array() ? type : Schema{type}; };
  Schema both = Schema::array();
  const auto add = [&](const Schema& type) {
    if (std::find(both.begin(), both.end(), type) == both.end()) both.push_back(type);
  };
  for (const Schema& left : list(a)) {
    for (const Schema& right : list(b)) {
      if (left == right) add(left);
      if (left == "integer" && right == "number") add(left);
      if (left == "number" && right == "integer") add(right);
    }
  }
  if (both.empty()) {
    fail(ErrorCode::kUsage, "{}: type {} and type {}: no value is both", place, a.dump(), b.dump());
  }
  return both.size() == 1 ? both.front() : both;
}

Schema merged_enums(const Schema& a, const Schema& b, const std::string& place, SchemaWork& work) {
  constexpr size_t kMostComparisons = 10'000'000;
  if (a.size() * b.size() > kMostComparisons) {
    fail(ErrorCode::kUsage, "{}: enum: lists of {} and {} values can't be compared", place,
         a.size(), b.size());
  }
  work.spend(n_values(a) * b.size(), place);
  Schema both = Schema::array();
  for (const Schema& value : a) {
    if (std::find(b.begin(), b.end(), value) != b.end()) both.push_back(value);
  }
  if (both.empty()) fail(ErrorCode::kUsage, "{}: enum: no value is left", place);
  return both;
}

// A schema that demands both; they are merged when they are read. Many in a row form one flat list.
Schema both_of(Schema a, const Schema& b) {
  const auto parts = a.size() == 1 ? a.find("allOf") : a.end();
  if (parts == a.end() || !parts->is_array()) {
    return {{"allOf", Schema::array({std::move(a), b})}};
  }
  parts->push_back(b);
  return a;
}

// Ordered JSON objects are searched from the beginning, so names are looked up in a table here.
Schema merged_properties(Schema a, const Schema& b) {
  auto& members = a.get_ref<Schema::object_t&>();
  std::unordered_map<std::string, size_t> places;
  for (const auto& member : members) places.emplace(member.first, places.size());
  for (const auto& [name, schema] : b.items()) {
    const auto [place, is_new] = places.try_emplace(name, members.size());
    if (is_new) {
      members.emplace_back(name, schema);
      continue;
    }
    Schema& found = members.data()[place->second].second;
    if (found != schema) found = both_of(std::move(found), schema);
  }
  return a;
}

// additionalProperties applies to the properties that its own schema does not name.
void check_closed(const Schema& closed, const Schema& other, const std::string& place,
                  SchemaWork& work) {
  const auto more = closed.find("additionalProperties");
  if (more == closed.end() || *more == true || !other.contains("properties")) return;
  std::set<std::string> known;
  if (const auto named = closed.find("properties"); named != closed.end()) {
    for (const auto& property : named->items()) known.insert(property.key());
  }
  for (const auto& [name, schema] : other["properties"].items()) {
    if (known.contains(name)) continue;
    work.leave_out("additionalProperties", place,
                   fmt::format("additionalProperties is about property '{}' of another part of "
                               "allOf, anyOf or $ref: that is not supported",
                               name));
  }
}

Schema merged_numbers(const std::string& keyword, const Schema& a, const Schema& b,
                      const std::string& place) {
  if (!a.is_number() || !b.is_number()) {
    fail(ErrorCode::kUsage, "{}: {} must be a number", place, keyword);
  }
  const bool is_lower = keyword.starts_with("min") || keyword == "exclusiveMinimum";
  return (a.get<double>() > b.get<double>()) == is_lower ? a : b;
}

Schema merged_keyword(const std::string& keyword, Schema a, const Schema& b,
                      const std::string& place, SchemaWork& work) {
  constexpr std::array<std::string_view, 10> kBounds = {
      "minimum",  "maximum",   "exclusiveMinimum", "exclusiveMaximum", "minItems",
      "maxItems", "minLength", "maxLength",        "minProperties",    "maxProperties"};
  if (a == b) return a;
  if (keyword == "type") return merged_types(a, b, place);
  if (keyword == "enum" && a.is_array() && b.is_array()) return merged_enums(a, b, place, work);
  if (keyword == "properties" && a.is_object() && b.is_object())
    return merged_properties(std::move(a), b);
  if (keyword == "required" && a.is_array() && b.is_array()) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  if (keyword == "items" && a.is_object() && b.is_object()) {
    return both_of(std::move(a), b);
  }
  if (keyword == "additionalProperties") {
    if (a == true) return b;
    if (b == true) return a;
  }
  if (among(kBounds, keyword)) return merged_numbers(keyword, a, b, place);
  work.leave_out(keyword, place,
                 fmt::format("{} is there twice, in parts of allOf, anyOf or $ref, and both "
                             "together are not supported",
                             keyword));
  return a;
}

}  // namespace

bool is_constraint(const std::string& keyword) {
  return among(kSupported, keyword) || among(kUnsupported, keyword);
}

void check_keywords(const Schema& schema, const std::string& place, SchemaWork& work) {
  for (const auto& [keyword, value] : schema.items()) {
    if (!among(kUnsupported, keyword)) continue;
    work.leave_out(keyword, place, fmt::format("the keyword {} is not supported", keyword));
  }
}

void SchemaWork::leave_out(const std::string& keyword, const std::string& place,
                           const std::string& message) {
  if (relaxation_ == nullptr) fail(ErrorCode::kUsage, "{}: {}", place, message);
  const size_t n_name = place.starts_with(name_ + ": ") ? name_.size() + 2 : 0;
  std::string what = fmt::format("{} ({})", keyword, place.substr(n_name));
  auto& all = relaxation_->left_out;
  if (!among(all, what)) all.push_back(std::move(what));
}

bool SchemaWork::take_repetitions(int64_t n) {
  if (relaxation_ == nullptr) return true;
  if (n > relaxation_->repetitions) return false;
  relaxation_->repetitions -= n;
  return true;
}

void SchemaWork::spend(size_t n, const std::string& place) {
  if (n > left_) {
    fail(ErrorCode::kUsage,
         "{}: too large: allOf, anyOf, oneOf or $ref repeat too much of the schema", place);
  }
  left_ -= n;
}

void SchemaWork::spend_copy(const Schema& schema, const std::string& place) {
  constexpr size_t kPerCopy = 10;  // copying a value takes as long as this many comparisons
  spend(kPerCopy * n_values(schema), place);
}

Schema constraints_beside(const Schema& schema, const std::string& keyword) {
  Schema rest = Schema::object();
  for (const auto& [name, value] : schema.items()) {
    if (name != keyword && is_constraint(name)) rest[name] = value;
  }
  return rest;
}

Schema merged(Schema a, const Schema& b, const std::string& place, SchemaWork& work) {
  check_closed(a, b, place, work);
  check_closed(b, a, place, work);
  for (const auto& [keyword, value] : b.items()) {
    if (!is_constraint(keyword)) continue;
    const auto found = a.find(keyword);
    if (found == a.end()) {
      a[keyword] = value;
    } else {
      *found = merged_keyword(keyword, std::move(*found), value, place, work);
    }
  }
  return a;
}

std::vector<std::string> types_of(const Schema& schema, const std::string& place) {
  std::vector<std::string> types;
  const auto type = schema.find("type");
  if (type != schema.end()) check_types(*type, place);
  if (type == schema.end()) {
    for (const auto& [keyword, of] : kTypeOfKeyword) {
      if (schema.contains(keyword) && !among(types, of)) types.emplace_back(of);
    }
    return types;
  }
  for (const Schema& one : type->is_array() ? *type : Schema{*type}) {
    if (!one.is_string() || !among(kTypes, one.get<std::string>())) {
      fail(ErrorCode::kUsage,
           "{}: type {}; there are null, boolean, object, array, number, string "
           "and integer",
           place, one.dump());
    }
    types.push_back(one);
  }
  if (types.empty()) fail(ErrorCode::kUsage, "{}: type is an empty list", place);
  return types;
}

}  // namespace snapkv::grammar
