// SPDX-License-Identifier: MIT
#include "text/grammar/json_schema.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "snapkv/grammar.h"
#include "text/grammar/schema_reader.h"

namespace snapkv::grammar {
namespace {

constexpr size_t kMostSchemaBytes = size_t{1} << 20;
constexpr int kMostSchemaNesting = 64;
constexpr int kMostRepetitions = 100000;  // lengths of strings and arrays
constexpr int kMostSchemas = 10000;       // schemas read, each alternative of anyOf included

// Checks how deep brackets are nested, before a recursive parser reads the text.
void check_nesting(std::string_view text, const std::string& name) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '{' || c == '[')) {
      if (++depth > 4 * kMostSchemaNesting) {
        fail(ErrorCode::kUsage, "{}: more than {} brackets inside each other", name,
             4 * kMostSchemaNesting);
      }
    } else if (!in_string && (c == '}' || c == ']')) {
      --depth;
    }
  }
}

bool has_constraints_beside(const Schema& schema, const std::string& keyword) {
  return std::any_of(schema.items().begin(), schema.items().end(), [&](const auto& member) {
    return member.key() != keyword && is_constraint(member.key());
  });
}

bool has_type(const Schema& value, const std::vector<std::string>& types) {
  return types.empty() || std::any_of(types.begin(), types.end(), [&](const std::string& type) {
           return type == "null"      ? value.is_null()
                  : type == "boolean" ? value.is_boolean()
                  : type == "object"  ? value.is_object()
                  : type == "array"   ? value.is_array()
                  : type == "string"  ? value.is_string()
                  : type == "number"  ? value.is_number()
                                      : value.is_number_integer();
         });
}

bool has_unevaluated(const Schema& schema) {
  return schema.contains("unevaluatedProperties") || schema.contains("unevaluatedItems");
}

// With all parts in one schema, what none of them has looked at is what is additional.
Schema with_unevaluated(Schema schema) {
  if (schema.contains("anyOf") || schema.contains("oneOf")) return schema;  // in each of them
  for (const auto& [name, same] : {std::pair("unevaluatedProperties", "additionalProperties"),
                                   std::pair("unevaluatedItems", "items")}) {
    if (schema.contains(name) && !schema.contains(same)) schema[same] = schema[name];
    schema.erase(name);
  }
  return schema;
}

// Whether the schema must be merged first: it has allOf, or keywords beside a $ref.
bool schema_is_merged(const Schema& schema) {
  return schema.contains("allOf") ||
         (schema.contains("$ref") && has_constraints_beside(schema, "$ref"));
}

}  // namespace

std::string shortened(const std::string& name) {
  constexpr size_t kMost = 100;
  if (name.size() <= kMost) return name;
  size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;
  return name.substr(0, end) + "...";
}

void SchemaReader::reject(const std::string& place, const std::string& what) const {
  fail(ErrorCode::kUsage, "{}: {}", at(place), what);
}

std::string SchemaReader::run() {
  const std::string root = rules_.reserve("root");
  references_["#"] = root;
  rules_.define(root, read(document_, "#", "root"));
  return rules_.text();
}

std::string SchemaReader::read(const Schema& given, const std::string& place,
                               const std::string& wish) {
  if (++n_read_ > kMostSchemas) {
    reject(place, fmt::format("too large: more than {} schemas, parts of anyOf with what stands "
                              "beside it included",
                              kMostSchemas));
  }
  if (++nesting_ > kMostSchemaNesting) {
    reject(place, fmt::format("more than {} schemas inside each other", kMostSchemaNesting));
  }
  if (given == true) {
    --nesting_;
    return rules_.json("value");
  }
  if (given == false) reject(place, "the schema false allows no value");
  if (!given.is_object()) reject(place, "a schema is an object, true or false");
  const bool is_flat = !schema_is_merged(given) && !has_unevaluated(given);
  const Schema merged_parts = is_flat ? Schema() : with_unevaluated(flattened(given, place));
  const Schema& schema = is_flat ? given : merged_parts;
  check_keywords(schema, at(place), work_);
  std::string expression;
  if (schema.contains("$ref")) {
    expression = read_reference(schema, place);
  } else if (schema.contains("anyOf") || schema.contains("oneOf")) {
    expression =
        read_alternatives(schema, schema.contains("anyOf") ? "anyOf" : "oneOf", place, wish);
  } else if (schema.contains("const")) {
    expression = read_values(schema, Schema::array({schema["const"]}), place);
  } else if (schema.contains("enum")) {
    expression = read_values(schema, schema["enum"], place);
  } else {
    const std::vector<std::string> types = types_of(schema, at(place));
    for (const std::string& type : types) {
      const std::string one =
          read_type(schema, type, place, types.size() == 1 ? wish : wish + "-" + type);
      expression += (expression.empty() ? "" : " | ") + one;
    }
    if (types.empty()) expression = rules_.json("value");
    if (types.size() > 1) expression = "(" + expression + ")";
  }
  if (schema.value("nullable", Schema()) == true) {  // OpenAPI's
    expression = "(" + expression + " | " + rules_.json("null") + ")";
  }
  --nesting_;
  rules_.count_bytes(expression.size());
  return expression;
}

Schema SchemaReader::flattened(const Schema& schema, const std::string& place, int nesting) {
  if (nesting > kMostSchemaNesting || ++n_read_ > kMostSchemas) {
    reject(place, "allOf and $ref inside each other without end");
  }
  if (schema == true) return Schema::object();
  if (!schema.is_object()) reject(place, "a schema is an object, true or false");
  work_.spend_copy(schema, at(place));
  if (schema.contains("$ref") && has_constraints_beside(schema, "$ref")) {
    if (!schema["$ref"].is_string()) reject(place, "$ref must be a string");
    const std::string reference = schema["$ref"];
    const Schema target = flattened(resolve(reference, place), reference, nesting + 1);
    return flattened(merged(target, constraints_beside(schema, "$ref"), at(place), work_), place,
                     nesting + 1);
  }
  if (!schema.contains("allOf")) return schema;
  const Schema& parts = schema["allOf"];
  if (!parts.is_array() || parts.empty()) reject(place, "allOf must be a list of schemas");
  Schema result = constraints_beside(schema, "allOf");
  for (size_t i = 0; i < parts.size(); ++i) {
    Schema part = flattened(parts[i], fmt::format("{}/allOf/{}", place, i), nesting + 1);
    const bool alone = parts.size() == 1 && result.empty();
    if (part.contains("$ref") && !alone) {  // a $ref left here has no keywords beside it
      const std::string reference = part["$ref"].is_string() ? part["$ref"] : Schema("");
      part = flattened(resolve(reference, place), reference, nesting + 1);
    }
    result = merged(std::move(result), part, at(place), work_);
  }
  return result.contains("$ref") || result.contains("allOf") ? flattened(result, place, nesting + 1)
                                                             : result;
}

const Schema& SchemaReader::resolve(const std::string& reference, const std::string& place) {
  static const Schema kAny = Schema::object();
  if (reference == "#") return document_;
  if (!reference.starts_with("#/")) {
    leave_out("$ref", place,
              fmt::format("$ref '{}': only references inside the schema (#/...) are supported",
                          reference));
    return kAny;
  }
  std::string pointer;  // with %25 and other escapes of URIs decoded
  for (size_t i = 1; i < reference.size(); ++i) {
    unsigned int code = 0;
    if (reference[i] == '%' && std::sscanf(reference.c_str() + i + 1, "%2x", &code) == 1) {
      pointer += static_cast<char>(code);
      i += 2;
    } else {
      pointer += reference[i];
    }
  }
  try {
    return document_.at(Schema::json_pointer(pointer));
  } catch (const nlohmann::json::exception&) {
    reject(place, fmt::format("$ref '{}': there is nothing at this place", reference));
  }
}

std::string SchemaReader::read_reference(const Schema& schema, const std::string& place) {
  if (!schema["$ref"].is_string()) reject(place, "$ref must be a string");
  const std::string reference = schema["$ref"];
  if (const auto known = references_.find(reference); known != references_.end()) {
    return known->second;
  }
  const Schema& target = resolve(reference, place);
  const size_t slash = reference.rfind('/');
  const std::string rule = rules_.reserve("ref-" + reference.substr(slash + 1));
  references_[reference] = rule;
  rules_.define(rule, read(target, shortened(reference), rule));
  return rule;
}

std::string SchemaReader::read_alternatives(const Schema& schema, const std::string& keyword,
                                            const std::string& place, const std::string& wish) {
  const Schema& parts = schema[keyword];
  if (!parts.is_array() || parts.empty()) {
    reject(place, fmt::format("{} must be a list of schemas", keyword));
  }
  const bool alone = !has_constraints_beside(schema, keyword);
  const Schema rest = constraints_beside(schema, keyword);
  std::string expression;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string part_place = fmt::format("{}/{}/{}", place, keyword, i);
    const std::string part_wish = fmt::format("{}-{}", wish, i);
    const std::string one =
        alone ? read(parts[i], part_place, part_wish)
              : read({{"allOf", Schema::array({rest, parts[i]})}}, part_place, part_wish);
    expression += (expression.empty() ? "" : " | ") + one;
  }
  return "(" + expression + ")";
}

std::string SchemaReader::read_values(const Schema& schema, const Schema& values,
                                      const std::string& place) {
  if (!values.is_array() || values.empty()) reject(place, "enum must be a list of values");
  for (const auto& [keyword, value] : schema.items()) {
    const bool fits =
        keyword == "type" || keyword == "enum" || keyword == "const" || keyword == "nullable";
    if (!fits && is_constraint(keyword)) {
      leave_out(keyword.c_str(), place,
                fmt::format("{} beside enum or const is not supported", keyword));
    }
  }
  const std::vector<std::string> types =
      schema.contains("type") ? types_of(schema, at(place)) : std::vector<std::string>();
  const auto list = schema.find("enum");  // an enum beside a const must contain the const
  const bool is_checked = list != schema.end() && list->is_array() && &*list != &values;
  std::string expression;
  for (const Schema& value : values) {
    const bool in_enum = !is_checked || std::find(list->begin(), list->end(), value) != list->end();
    if (!in_enum || !has_type(value, types)) continue;
    expression += (expression.empty() ? "" : " | ") + gbnf_literal(value.dump());
  }
  if (expression.empty()) reject(place, "no value of enum or const has the type");
  return "(" + expression + ")";
}

std::string SchemaReader::read_type(const Schema& schema, const std::string& type,
                                    const std::string& place, const std::string& wish) {
  if (type == "object") return read_object(schema, place, wish);
  if (type == "array") return read_array(schema, place, wish);
  if (type == "string") return read_string(schema, place);
  if (type == "integer" || type == "number") return read_number(schema, type == "integer", place);
  return rules_.json(type);
}

std::optional<int64_t> SchemaReader::count_of(const Schema& schema, const char* keyword,
                                              const std::string& place) {
  const auto value = schema.find(keyword);
  if (value == schema.end()) return std::nullopt;
  const bool whole = value->is_number() && value->get<double>() >= 0 &&
                     value->get<double>() <= 1e15 &&
                     value->get<double>() == static_cast<double>(value->get<int64_t>());
  if (!whole)
    reject(place,
           fmt::format("{} must be a whole number of 0 or more, not {}", keyword, value->dump()));
  const auto n = value->get<int64_t>();
  if (n > kMostRepetitions || !work_.take_repetitions(n)) {
    leave_out(
        keyword, place,
        fmt::format("{} {}: at most {} is supported", keyword, value->dump(), kMostRepetitions));
    return std::nullopt;
  }
  return n;
}

ParseLimits schema_limits() {
  ParseLimits limits;
  limits.n_bytes = size_t{1} << 24;
  limits.n_rules = 100000;
  limits.nesting = 200;
  limits.repetition = kMostRepetitions;
  return limits;
}

std::string schema_to_gbnf(std::string_view text, const std::string& name,
                           SchemaRelaxation* relaxation) {
  if (text.size() > kMostSchemaBytes) {
    fail(ErrorCode::kUsage, "{}: {} bytes; a schema may have {}", name, text.size(),
         kMostSchemaBytes);
  }
  check_nesting(text, name);
  Schema schema;
  try {
    schema = Schema::parse(text);
  } catch (const nlohmann::json::exception& e) {
    fail(ErrorCode::kUsage, "{}: no JSON: {}", name, e.what());
  }
  try {
    return SchemaReader(schema, name, relaxation).run();
  } catch (const nlohmann::json::exception& e) {  // thrown by dump() for text that is not UTF-8
    fail(ErrorCode::kUsage, "{}: {}", name, e.what());
  }
}

}  // namespace snapkv::grammar
