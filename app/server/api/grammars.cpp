// SPDX-License-Identifier: MIT
#include "server/api/grammars.h"

#include <fmt/core.h>

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
  take(body, "response_format", of_format({body, "response_format"}, warnings));
  for (const FormatField& field : formats) {
    take(field.owner, field.name, of_format(field, warnings));
  }
  return grammar;
}

}  // namespace snapkv::server
