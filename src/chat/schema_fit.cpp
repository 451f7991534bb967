// SPDX-License-Identifier: MIT
#include "chat/schema_fit.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "chat/parameter_types.h"

namespace snapkv::chat {
namespace {

// Limits on the nesting of schemas and on the parts of schemas and values that are compared.
constexpr int kMostFitNesting = 64;
constexpr size_t kMostFitSteps = 100'000;

class SchemaFit {
 public:
  explicit SchemaFit(const Json& document) : document_(document) {}

  bool fits(const Json& value, const Json& unresolved, int nesting) {
    if (nesting > kMostFitNesting || ++n_steps_ > kMostFitSteps) return false;
    const Json& schema = resolved(unresolved, document_);
    if (schema.is_boolean()) return schema.get<bool>();
    if (!schema.is_object()) return true;
    if (value.is_null() && schema.value("nullable", Json()) == true) return true;
    return (types_of(value) & schema_types(keywords_of_type(schema), document_)) != 0 &&
           fits_words(value, schema, nesting) &&
           (!value.is_object() || fits_object(value, schema, nesting)) &&
           (!value.is_array() || fits_array(value, schema, nesting));
  }

 private:
  /// `type` alone: the other keywords that say something about types are looked at by themselves.
  static Json keywords_of_type(const Json& schema) {
    const auto type = schema.find("type");
    return type == schema.end() ? Json::object() : Json{{"type", *type}};
  }

  bool fits_words(const Json& value, const Json& schema, int nesting) {
    const auto is_any = [&](const Json& list, const auto& test) {
      return !list.is_array() || std::any_of(list.begin(), list.end(), test);
    };
    const auto nested = [&](const Json& each) { return fits(value, each, nesting + 1); };
    for (const auto& [keyword, words] : schema.items()) {
      bool fit = true;
      if (keyword == "const") {
        fit = value == words;
      } else if (keyword == "enum") {
        fit = is_any(words, [&](const Json& each) { return value == each; });
      } else if (keyword == "anyOf" || keyword == "oneOf") {
        fit = is_any(words, nested);
      } else if (keyword == "allOf" && words.is_array()) {
        fit = std::all_of(words.begin(), words.end(), nested);
      }
      if (!fit) return false;
    }
    return true;
  }

  bool fits_object(const Json& value, const Json& schema, int nesting) {
    if (const auto required = schema.find("required");
        required != schema.end() && required->is_array()) {
      for (const Json& name : *required) {
        if (name.is_string() && !value.contains(name.get_ref<const std::string&>())) return false;
      }
    }
    const auto properties = schema.find("properties");
    const auto others = schema.find("additionalProperties");
    for (const auto& [name, member] : value.items()) {
      const bool is_named = properties != schema.end() && properties->contains(name);
      if (is_named && !fits(member, (*properties)[name], nesting + 1)) return false;
      if (!is_named && others != schema.end() && !fits(member, *others, nesting + 1)) return false;
    }
    return true;
  }

  bool fits_array(const Json& value, const Json& schema, int nesting) {
    const auto items = schema.find("items");
    return items == schema.end() || std::all_of(value.begin(), value.end(), [&](const Json& item) {
             return fits(item, *items, nesting + 1);
           });
  }

  const Json& document_;
  size_t n_steps_ = 0;
};

}  // namespace

bool fits_schema(const Json& value, const Json& schema) {
  return SchemaFit(schema).fits(value, schema, 0);
}

}  // namespace snapkv::chat
