// SPDX-License-Identifier: MIT
#include "server/api/grammars.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "chat/tool_schemas.h"
#include "server/api/api_error.h"

namespace snapkv::server {
namespace {

using Warnings = std::vector<std::string>;

std::shared_ptr<const Grammar> of_schema(const Json& schema, Warnings& warnings) {
  SchemaRelaxation relaxation;
  auto grammar = std::make_shared<const Grammar>(
      Grammar::from_json_schema(to_text(schema), "schema", &relaxation));
  std::string warning = chat::relaxation_warning("schema", relaxation);
  if (!warning.empty()) warnings.push_back(std::move(warning));
  return grammar;
}

/// Runs `make` and reports its errors as errors of this field.
template <typename Make>
std::shared_ptr<const Grammar> for_field(const std::string& field, Make make) {
  try {
    return make();
  } catch (const Error& e) {
    throw bad_request(field, fmt::format("'{}': {}", field, e.what()));
  }
}

/// `schema_owner`: the object that has the member schema.
std::shared_ptr<const Grammar> of_format(const Fields& format, const Fields& schema_owner,
                                         Warnings& warnings) {
  const std::string type = format.needed_text("type");
  if (type == "text") return nullptr;
  const bool has_schema = schema_owner.find("schema") != nullptr;
  if (type == "json_schema" || (type == "json_object" && has_schema)) {
    // true and false are schemas too
    const Json& schema = schema_owner.need("schema");
    return for_field(schema_owner.name("schema"), [&] { return of_schema(schema, warnings); });
  }
  if (type == "json_object") return std::make_shared<const Grammar>(Grammar::json_object());
  format.refuse("type", "text, json_object or json_schema", Json(type));
}

/// Returns null if the field is absent or asks for any text.
std::shared_ptr<const Grammar> of_format(const FormatField& field, Warnings& warnings) {
  const Json* given = field.owner.object(field.name);
  if (given == nullptr) return nullptr;
  const std::string path = field.owner.name(field.name) + ".";
  const Fields format(*given, path);
  const bool nested =
      format.text("type").value_or("") == "json_schema" && format.has("json_schema");
  if (!nested) return of_format(format, format, warnings);
  return of_format(format, Fields(format.need("json_schema"), path + "json_schema."), warnings);
}

/// vLLM's lists of answers: one of them, as it is.
std::shared_ptr<const Grammar> of_choices(const Fields& owner, const char* name) {
  const Json& choices = *owner.array(name);
  std::string gbnf;
  for (const Json& choice : choices) {
    if (!choice.is_string()) owner.refuse(name, "an array of strings", choice);
    gbnf += fmt::format("{}{}", gbnf.empty() ? "root ::= " : " | ",
                        gbnf_literal(choice.get_ref<const std::string&>()));
  }
  if (choices.empty()) owner.refuse(name, "there is nothing to choose from");
  return compile_grammar(gbnf, owner.name(name), owner.name(name).c_str());
}

/// vLLM's schemas: an object, or its text.
std::shared_ptr<const Grammar> of_schema_or_text(const Fields& owner, const char* name,
                                                 Warnings& warnings) {
  const Json& given = owner.need(name);
  const Json schema = given.is_string() ? parse_held(given.get_ref<const std::string&>()) : given;
  if (schema.is_discarded()) owner.refuse(name, "a JSON schema", given);
  return for_field(owner.name(name), [&] { return of_schema(schema, warnings); });
}

/// vLLM's fields, in `structured_outputs` (json, choice ...) or in the body (guided_json ...).
/// `use(name, grammar)` takes each that is there.
template <typename Use>
void read_structured(const Fields& owner, const std::string& prefix, Warnings& warnings, Use use) {
  const std::string json = prefix + "json", choice = prefix + "choice", regex = prefix + "regex",
                    grammar = prefix + "grammar", object = prefix + "json_object";
  if (owner.has(json.c_str())) {
    use(owner, json.c_str(), of_schema_or_text(owner, json.c_str(), warnings));
  }
  if (owner.has(choice.c_str())) use(owner, choice.c_str(), of_choices(owner, choice.c_str()));
  if (const auto gbnf = owner.text(grammar.c_str())) {
    const std::string name = owner.name(grammar.c_str());
    use(owner, grammar.c_str(), compile_grammar(*gbnf, name, name.c_str()));
  }
  if (owner.boolean(object.c_str()).value_or(false)) {
    use(owner, object.c_str(), std::make_shared<const Grammar>(Grammar::json_object()));
  }
  if (const auto pattern = owner.text(regex.c_str())) {
    use(owner, regex.c_str(), for_field(owner.name(regex.c_str()), [&] {
          return std::make_shared<const Grammar>(Grammar::from_regex(*pattern));
        }));
  }
  if (const std::string tag = prefix + "structural_tag"; owner.has(tag.c_str())) {
    owner.refuse(tag.c_str(), "this server has tools, grammars and schemas for that");
  }
}

}  // namespace

std::shared_ptr<const Grammar> compile_grammar(const std::string& gbnf, const std::string& name,
                                               const char* field) {
  return for_field(field,
                   [&] { return std::make_shared<const Grammar>(Grammar::parse(gbnf, name)); });
}

std::shared_ptr<const Grammar> compile_tool_grammar(const std::string& gbnf) {
  return for_field("tools", [&] {
    return std::make_shared<const Grammar>(Grammar::parse_schema_rules(gbnf, "tool_choice"));
  });
}

std::shared_ptr<const Grammar> read_grammar(const Fields& body, Warnings& warnings,
                                            const std::vector<FormatField>& formats) {
  std::shared_ptr<const Grammar> grammar;
  if (const auto gbnf = body.text("grammar")) {
    if (!gbnf->empty()) grammar = compile_grammar(*gbnf, "grammar", "grammar");
  }
  const auto take = [&](const Fields& owner, const char* field,
                        std::shared_ptr<const Grammar> other) {
    if (other == nullptr) return;
    if (grammar != nullptr) owner.refuse(field, "the answer's form is given twice");
    grammar = std::move(other);
  };
  if (const Json* schema = body.find("json_schema")) {  // llama-server's field
    take(body, "json_schema",
         for_field("json_schema", [&] { return of_schema(*schema, warnings); }));
  }
  read_structured(body.inside("structured_outputs"), "", warnings, take);
  read_structured(body, "guided_", warnings, take);
  take(body, "response_format", of_format({body, "response_format"}, warnings));
  for (const FormatField& field : formats) {
    take(field.owner, field.name, of_format(field, warnings));
  }
  return grammar;
}

}  // namespace snapkv::server
