// SPDX-License-Identifier: MIT
// Schemas that say more than a grammar can: what is left out is named, and the rest holds.
#include <gtest/gtest.h>

#include "tests/text/grammar/grammar_support.h"

namespace snapkv::test {
namespace {

struct Relaxed {
  const char* schema;
  std::vector<std::string> left_out;
  std::vector<std::string> valid, invalid;
};

class Relaxation : public testing::TestWithParam<Relaxed> {};

TEST_P(Relaxation, IsNamed) {
  SchemaRelaxation relaxation;
  const Grammar grammar = Grammar::from_json_schema(GetParam().schema, "schema", &relaxation);
  EXPECT_EQ(relaxation.left_out, GetParam().left_out);
  for (const std::string& text : GetParam().valid) {
    EXPECT_TRUE(allows(grammar, text)) << text << "\n" << grammar.source();
  }
  for (const std::string& text : GetParam().invalid) {
    EXPECT_FALSE(allows(grammar, text)) << text << "\n" << grammar.source();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Schemas, Relaxation,
    testing::Values(
        Relaxed{R"({"type": "integer", "minimum": 3})", {}, {"3"}, {"2"}},
        Relaxed{R"({"properties": {"tags": {"type": "array", "items": {"type": "string"},
                    "uniqueItems": true, "minItems": 1}}})",
                {"uniqueItems (#/properties/tags)"},
                {R"({"tags":["a"]})"},
                {R"({"tags":[]})"}},
        Relaxed{R"({"type": "string", "not": {"const": "x"}, "maxLength": 1})",
                {"not (#)"},
                {R"("y")"},
                {R"("yy")"}},
        Relaxed{R"({"properties": {"a": {"type": "integer"}}, "required": ["a"],
                    "if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}})",
                {"if (#)", "then (#)"},
                {R"({"a":1})"},
                {"{}"}},
        // pydantic's Decimal
        Relaxed{R"j({"anyOf": [{"type": "number"}, {"type": "string",
                    "pattern": "^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$"}]})j",
                {"pattern: look-around (#/anyOf/1)"},
                {"1.5", R"("-12.50")", R"("0")"},
                {R"("a")", R"("1.2.3")"}},
        Relaxed{R"({"type": "string", "pattern": "^\\bab\\b"})",
                {"pattern: look-around (#)"},
                {R"("abc")"},
                {R"("ba")"}},
        Relaxed{R"({"type": "string", "pattern": "^(?P<a>x)\\Z"})",
                {"pattern (#)"},
                {R"("anything")"},
                {"1"}},
        Relaxed{R"({"type": "string", "pattern": "^a|b$", "maxLength": 9, "format": "date"})",
                {"format (#)", "maxLength (#)"},
                {R"("ax")"},
                {R"("xa")"}},
        Relaxed{R"({"type": "integer", "minimum": 1e30, "maximum": 1e30})",
                {"minimum (#)"},
                {"5"},
                {"0.5"}},
        Relaxed{R"({"type": "integer", "multipleOf": 7, "minimum": 0})",
                {"multipleOf (#)"},
                {"8"},
                {"-7"}},
        Relaxed{R"({"properties": {"a": {"$ref": "https://example.com/x.json"},
                    "b": {"type": "null"}}})",
                {"$ref (#/properties/a)"},
                {R"({"a":[1],"b":null})"},
                {R"({"b":1})"}},
        Relaxed{R"({"allOf": [{"properties": {"a": {}}, "additionalProperties": false},
                              {"properties": {"b": {}}}]})",
                {"additionalProperties (#)"},
                {R"({"a":1,"b":2})"},
                {R"({"c":1})"}},
        Relaxed{R"({"enum": ["abc"], "minLength": 2})", {"minLength (#)"}, {R"("abc")"}, {"1"}},
        Relaxed{R"({"type": "string", "maxLength": 1000000})", {"maxLength (#)"}, {R"("a")"}, {}},
        Relaxed{R"({"properties": {"a": {"maxLength": 60000}, "b": {"maxLength": 60000}}})",
                {"maxLength (#/properties/b)"},
                {R"({"a":"x","b":"y"})"},
                {R"({"a":1})"}}));

// What is not a schema stays an error.
TEST(JsonSchemaRelaxation, IsOfValidSchemas) {
  for (const char* schema : {R"({"type": "aray"})", R"({"$ref": "#/nowhere"})", "{",
                             R"({"type": "string", "minLength": 3, "maxLength": 2})"}) {
    SchemaRelaxation relaxation;
    EXPECT_THROW(Grammar::from_json_schema(schema, "schema", &relaxation), Error) << schema;
  }
}

}  // namespace
}  // namespace snapkv::test
