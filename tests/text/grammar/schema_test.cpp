// SPDX-License-Identifier: MIT
// JSON schemas as grammars: the documents they allow, and the errors. schema_oracle
// (tests/text/grammar/oracle) compares them with a validator on many documents.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <ctime>
#include <functional>

#include "tests/support/expect_error.h"
#include "tests/text/grammar/grammar_support.h"

namespace snapkv::test {
namespace {

struct Case {
  const char* schema;
  std::vector<std::string> valid;
  std::vector<std::string> invalid;
};

class JsonSchema : public testing::TestWithParam<Case> {};

TEST_P(JsonSchema, Allows) {
  const Grammar grammar = Grammar::from_json_schema(GetParam().schema);
  for (const std::string& text : GetParam().valid) {
    EXPECT_TRUE(allows(grammar, text)) << text << "\n" << grammar.source();
  }
  for (const std::string& text : GetParam().invalid) {
    EXPECT_FALSE(allows(grammar, text)) << text << "\n" << grammar.source();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Types, JsonSchema,
    testing::Values(Case{R"({"type": "null"})", {"null"}, {"0", "", "null "}},
                    Case{R"({"type": "boolean"})", {"true", "false"}, {"1", "True"}},
                    Case{R"({"type": "integer"})",
                         {"0", "-5", "1234567890123456"},
                         {"1.0", "01", "+1", "-", "12345678901234567"}},
                    Case{R"({"type": "number"})",
                         {"0", "-0.5", "1e10", "12.25E-3"},
                         {".5", "1.", "0x1", "NaN"}},
                    Case{R"({"type": "string"})",
                         {R"("")", R"("a b")", R"("\n\"\\\u00e9")", "\"\xc3\xa9\xf0\x9f\x98\x80\""},
                         {"\"a\nb\"", R"("\x")", "a", "\"", R"("\ud83d")"}},
                    Case{"{}",
                         {"1", "[]", R"({"a": [null, {"b": "c"}]})", "\"x\""},
                         {"", "}", "[1,]", "{1: 2}"}},
                    Case{"true", {"1", "{}"}, {"x"}},
                    Case{R"({"type": "object"})",
                         {"{}", R"({"a":1,"b":{}})"},
                         {"[]", R"({"a"})", R"({"a":1,})"}},
                    Case{R"({"type": ["string", "null"]})", {R"("x")", "null"}, {"1"}},
                    Case{R"({"enum": ["a", 1, null, {"k": [1]}]})",
                         {R"("a")", "1", "null", R"({"k":[1]})"},
                         {"2", "\"b\""}},
                    Case{R"({"type": "string", "enum": ["a", 1]})", {R"("a")"}, {"1"}},
                    Case{R"({"const": "a\"b"})", {R"("a\"b")"}, {R"("a")"}},
                    Case{R"({"type": "integer", "const": 5, "title": "five"})", {"5"}, {"4"}}));

INSTANTIATE_TEST_SUITE_P(
    Objects, JsonSchema,
    testing::Values(
        // Members come in the schema's order; optional ones may be anywhere.
        Case{
            R"({"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}},
                 "required": ["b"]})",
            {R"({"b":1})", R"({"a":1,"b":2})", R"({"b":1, "c":2})",
             R"({ "a": 1, "b": 2, "c": 3 })"},
            {"{}", R"({"a":1})", R"({"b":1,"a":2})", R"({"a":1,"c":2})", R"({"b":1,"d":2})",
             R"({"b":1,})", R"({,"b":1})"}},
        Case{R"({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}}})",
             {"{}", R"({"a":null})", R"({"b":null})", R"({"a":null,"b":null})"},
             {R"({"b":null,"a":null})", R"({,"a":null})"}},
        Case{R"({"type": "object", "additionalProperties": {"type": "integer"}})",
             {"{}", R"({"x":1,"y":2})"},
             {R"({"x":"1"})"}},
        Case{R"({"type": "object", "additionalProperties": false})", {"{}"}, {R"({"x":1})"}},
        Case{
            R"({"properties": {"ab": {"type": "integer"}, "ac": {"type": "integer"}, "a": {"type": "integer"}},
                 "additionalProperties": {"type": "string"}, "required": ["ab"]})",
            {R"({"ab":1})", R"({"ab":1,"x":"y"})", R"({"ab":1,"a":2,"abc":"y","":"z"})",
             R"({"ab":1,"\n":"x"})"},
            {R"({"ab":1,"ac":"x"})", R"({"ab":1,"a":"x"})", R"({"x":"y","ab":1})",
             R"({"ab":1,"\u0061":"x"})"}},
        Case{
            R"({"properties": {"q\"\\\n": {"type": "null"}}, "additionalProperties": {"type": "integer"}})",
            {R"({"q\"\\\n":null})", R"({"q\"\\":1})", R"({"q":1})"},
            {R"({"q\"\\\n":1})"}},
        Case{R"({"type": "object", "required": ["x"]})", {R"({"x":[1]})"}, {"{}", R"({"y":1})"}},
        Case{R"({"properties": {"n": {"properties": {"m": {"type": "boolean"}}, "required": ["m"]}},
                 "required": ["n"]})",
             {R"({"n":{"m":true}})"},
             {R"({"n":{}})"}}));

INSTANTIATE_TEST_SUITE_P(
    Arrays, JsonSchema,
    testing::Values(
        Case{R"({"type": "array"})", {"[]", R"([1, "a", []])"}, {"[1", "[,]"}},
        Case{R"({"items": {"type": "integer"}})", {"[]", "[1,2]"}, {R"(["a"])", "[1,]"}},
        Case{R"({"items": {"type": "integer"}, "minItems": 1, "maxItems": 3})",
             {"[1]", "[1,2,3]"},
             {"[]", "[1,2,3,4]"}},
        Case{R"({"type": "array", "minItems": 2})", {"[1,2]", "[1,2,3]"}, {"[1]"}},
        Case{R"({"type": "array", "maxItems": 0})", {"[]"}, {"[1]"}},
        Case{R"({"prefixItems": [{"type": "integer"}, {"type": "string"}]})",
             {R"([1,"a"])"},
             {"[1]", R"([1,"a",2])", R"(["a",1])"}},
        Case{R"({"items": [{"type": "integer"}, {"type": "string"}]})", {R"([1,"a"])"}, {"[1]"}},
        Case{
            R"({"prefixItems": [{"type": "integer"}], "items": {"type": "string"}, "minItems": 2, "maxItems": 3})",
            {R"([1,"a"])", R"([1,"a","b"])"},
            {"[1]", R"([1,"a","b","c"])", "[1,2]"}},
        Case{R"({"items": {"items": {"type": "null"}}})", {"[[],[null]]"}, {"[null]"}}));

INSTANTIATE_TEST_SUITE_P(
    Strings, JsonSchema,
    testing::Values(
        Case{R"({"type": "string", "minLength": 2, "maxLength": 3})",
             {R"("ab")", R"("a\n\u00e9")", "\"\xc3\xa9\xc3\xa9\""},
             {R"("a")", R"("abcd")"}},
        Case{R"({"type": "string", "minLength": 3})", {R"("abcdef")"}, {R"("ab")"}},
        Case{R"({"pattern": "^[a-c]+\\d{2}$"})",
             {R"("abc12")"},
             {R"("12")", R"("abc1")", R"("abc123")"}},
        Case{R"({"pattern": "b+"})", {R"("abbc")", R"("b")"}, {R"("ac")", R"("")"}},
        Case{R"({"pattern": "^(a|bc)?x*$"})", {R"("")", R"("bcxx")", R"("a")"}, {R"("ab")"}},
        Case{R"({"pattern": "^a|b$"})", {R"("axx")", R"("xxb")"}, {R"("xax")"}},
        Case{R"({"pattern": "^[^a\"]\\.\\\"\\\\$"})", {R"("b.\"\\")"}, {R"("a.\"\\")"}},
        Case{R"({"pattern": "^\\w\\s\\W.$"})",
             {R"("a\t-x")", "\"_ \xc3\xa9\xe2\x82\xac\""},
             {R"("a-- ")", R"("a -\n")"}},
        Case{R"({"pattern": "^(?:\\u00e9|[\\u4e00-\\u9fff]){1,2}?$"})",
             {"\"\xc3\xa9\"", "\"\xe7\x8e\x9b\xe4\xb8\xbd\""},
             {R"("e")"}},
        Case{R"({"format": "date", "type": "string"})",
             {R"("2024-02-29")", R"("1999-12-31")", R"("2000-02-29")"},
             {R"("2023-02-29")", R"("1900-02-29")", R"("2024-13-01")", R"("2024-04-31")",
              R"("2024-1-1")"}},
        Case{R"({"format": "time", "type": "string"})",
             {R"("23:59:59Z")", R"("00:00:00.123+02:00")"},
             {R"("24:00:00Z")", R"("12:00:00")"}},
        Case{R"({"format": "date-time", "type": "string"})",
             {R"("2024-01-31T12:00:00Z")"},
             {R"("2024-01-31 12:00:00Z")"}},
        Case{R"({"format": "uuid", "type": "string"})",
             {R"("123e4567-e89b-12d3-a456-426614174000")"},
             {R"("123e4567")"}},
        Case{R"({"format": "email", "type": "string"})", {R"("not checked")"}, {"1"}}));

INSTANTIATE_TEST_SUITE_P(
    Numbers, JsonSchema,
    testing::Values(
        Case{R"({"type": "integer", "minimum": 0})", {"0", "7", "1234567890"}, {"-1"}},
        Case{R"({"type": "integer", "minimum": 13, "maximum": 2047})",
             {"13", "99", "100", "999", "1999", "2000", "2047"},
             {"12", "2048", "3000", "10000", "013", "-13"}},
        Case{R"({"type": "integer", "minimum": -25, "maximum": 7})",
             {"-25", "-1", "0", "7"},
             {"-26", "8", "-0", "10"}},
        Case{R"({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 4})",
             {"2", "3"},
             {"1", "4"}},
        Case{R"({"type": "integer", "minimum": 0.5, "maximum": 2.5})", {"1", "2"}, {"0", "3"}},
        Case{R"({"type": "integer", "maximum": -10})", {"-10", "-99999"}, {"-9", "0", "5"}},
        Case{R"({"type": "number", "minimum": 0, "maximum": 1})",
             {"0", "0.75", "1", "1.0", "0.0"},
             {"1.5", "-0.5", "1.01", "2", "5e-1"}},
        Case{R"({"type": "number", "exclusiveMinimum": 0})",
             {"0.001", "12.5", "1"},
             {"0", "0.0", "-1"}},
        Case{R"({"type": "number", "exclusiveMaximum": 3, "minimum": -2})",
             {"-2", "-1.5", "0", "2.999"},
             {"3", "3.0", "-2.5", "-3"}},
        Case{R"({"type": "number", "maximum": -5})", {"-5", "-5.5", "-60"}, {"-4.9", "0", "5"}},
        Case{R"({"type": "number", "minimum": 0.5, "maximum": 0.75})",
             {"0.5", "0.50", "0.51", "0.7", "0.749999", "0.75", "0.7500"},
             {"0", "0.4", "0.49", "0.751", "0.7501", "0.8", "1", "-0.6"}},
        Case{R"({"type": "number", "exclusiveMinimum": -1.25, "exclusiveMaximum": 10.05})",
             {"-1.249", "-1", "-0.5", "0", "9.99", "10", "10.0", "10.049"},
             {"-1.25", "-1.250", "-1.3", "-2", "10.05", "10.050", "10.1", "11"}},
        Case{R"({"type": "number", "minimum": 1e-3})",
             {"0.001", "0.0010", "0.01", "1", "7.5"},
             {"0", "0.0009", "-1"}},
        Case{R"({"type": "number", "minimum": 0, "maximum": 1e300})", {"0", "5.5"}, {"-1"}},
        Case{R"({"type": "integer", "maximum": 18446744073709551615, "minimum": -1e40})",
             {"-5", "0", "123456789012345678"},
             {"1.5"}},
        Case{R"({"type": "number", "minimum": 1, "exclusiveMinimum": true})",
             {"1.1", "2"},
             {"1", "1.0"}},
        Case{R"({"type": "integer", "multipleOf": 1})", {"7"}, {"7.5"}},
        Case{R"({"type": "integer", "multipleOf": 2})", {"0", "-14", "2"}, {"1", "13"}},
        Case{R"({"type": "integer", "multipleOf": 5})", {"0", "15", "-20"}, {"1", "13"}},
        Case{R"({"type": "integer", "multipleOf": 100})", {"0", "100", "-2500"}, {"10", "250"}},
        Case{R"({"type": "number", "multipleOf": 0.01, "minimum": 0})",
             {"0", "1.5", "2.25"},
             {"1.255", "-1"}}));

INSTANTIATE_TEST_SUITE_P(
    Helpers, JsonSchema,
    testing::Values(
        Case{R"({"type": "string", "pattern": "^[a-z0-9-]+$", "maxLength": 4})",
             {R"("a")", R"("a-9z")"},
             {R"("")", R"("abcde")", R"("A")"}},
        Case{R"({"type": "string", "pattern": "^\\d{2,}$", "minLength": 3})",
             {R"("123")", R"("123456")"},
             {R"("12")", R"("12a")"}},
        Case{R"({"type": "string", "nullable": true})", {R"("x")", "null"}, {"1"}},
        Case{R"({"enum": ["a"], "nullable": true})", {R"("a")", "null"}, {R"("b")"}},
        Case{R"({"type": "object", "minProperties": 1, "maxProperties": 2})",
             {R"({"a":1})", R"({"a":1,"b":[]})"},
             {"{}", R"({"a":1,"b":2,"c":3})"}},
        Case{R"({"type": "object", "propertyNames": {"pattern": "^[a-z]+$"},
                 "additionalProperties": {"type": "integer"}})",
             {"{}", R"({"ab":1,"c":2})"},
             {R"({"A":1})", R"({"a":"x"})"}},
        Case{R"({"propertyNames": {"enum": ["a", "b"]}})", {R"({"a":[1]})"}, {R"({"c":1})"}},
        Case{R"({"patternProperties": {"^x-": {"type": "boolean"}}, "type": "object"})",
             {"{}", R"({"x-a":true})"},
             {R"({"y":true})", R"({"x-a":1})"}},
        Case{R"({"properties": {"a": {}}, "required": ["a"], "minProperties": 1,
                 "maxProperties": 3, "propertyNames": {"minLength": 1}})",
             {R"({"a":1})"},
             {"{}"}},
        Case{R"({"type": "array", "uniqueItems": true, "maxItems": 1})", {"[1]"}, {"[1,1]"}},
        Case{R"({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}],
                 "unevaluatedProperties": false})",
             {R"({"a":1,"b":2})"},
             {R"({"c":1})"}},
        Case{R"({"properties": {"a": {}}, "unevaluatedProperties": {"type": "integer"}})",
             {R"({"a":"x","b":2})"},
             {R"({"b":"x"})"}}));

INSTANTIATE_TEST_SUITE_P(
    Combinations, JsonSchema,
    testing::Values(
        Case{R"({"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 1}]})",
             {"1", R"("a")"},
             {R"("ab")", "null"}},
        Case{R"({"oneOf": [{"const": 1}, {"const": 2}]})", {"1", "2"}, {"3"}},
        Case{R"({"allOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]},
                           {"properties": {"b": {"type": "null"}}, "required": ["b"]}]})",
             {R"({"a":1,"b":null})"},
             {R"({"a":1})", R"({"b":null})"}},
        Case{
            R"({"allOf": [{"type": "integer", "minimum": 3}, {"maximum": 5}, {"type": ["integer", "string"], "minimum": 1}]})",
            {"3", "5"},
            {"2", "6"}},
        Case{
            R"({"properties": {"k": {"enum": ["a", "b"]}, "v": {"type": "integer"}}, "required": ["k"],
                 "anyOf": [{"required": ["v"]}, {"properties": {"k": {"const": "b"}}}]})",
            {R"({"k":"a","v":1})", R"({"k":"b"})"},
            {R"({"k":"a"})"}},
        Case{R"({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {
                 "v": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}}, "required": ["v"]}}})",
             {R"({"v":1})", R"({"v":1,"next":{"v":2,"next":{"v":3}}})"},
             {R"({"v":1,"next":{}})"}},
        Case{
            R"({"definitions": {"a/b c": {"type": "null"}}, "items": {"$ref": "#/definitions/a~1b%20c"}})",
            {"[null,null]"},
            {"[1]"}},
        Case{R"({"properties": {"child": {"$ref": "#"}}})",
             {"{}", R"({"child":{"child":{}}})"},
             {R"({"child":1})"}},
        Case{R"({"properties": {"child": {"allOf": [{"$ref": "#"}], "title": "of pydantic"}}})",
             {"{}", R"({"child":{"child":{}}})"},
             {R"({"child":1})", R"({"child":{"child":1}})"}},
        Case{
            R"({"$defs": {"s": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/s", "maxLength": 2,
                 "description": "short"}}})",
            {R"({"a":"xy"})"},
            {R"({"a":"xyz"})"}}));

TEST(JsonSchemaErrors, NameThePlaceAndTheKeyword) {
  const std::vector<std::pair<const char*, std::vector<std::string>>> cases = {
      {"{", {"no JSON"}},
      {"[]", {"#", "an object, true or false"}},
      {"false", {"allows no value"}},
      {R"({"type": "text"})", {"#: type \"text\""}},
      {R"({"properties": {"a": {"not": {}}}})", {"#/properties/a", "not is not supported"}},
      {R"({"items": {"multipleOf": 7}})", {"#/items", "multipleOf 7"}},
      {R"({"items": {"multipleOf": 0}})", {"#/items", "a number above 0, not 0"}},
      {R"({"type": "integer", "minimum": 1, "multipleOf": 5})", {"multipleOf 5 beside bounds"}},
      {R"({"patternProperties": {"a": {}, "b": {}}})", {"more than one of patternProperties"}},
      {R"({"properties": {"a": {}}, "minProperties": 1})", {"minProperties beside properties"}},
      {R"({"minProperties": 2, "maxProperties": 1})", {"minProperties 2 and maxProperties 1"}},
      {R"({"if": {}})", {"the keyword if"}},
      {R"({"type": "array", "uniqueItems": true})", {"uniqueItems"}},
      {R"j({"type": "string", "pattern": "(?=a)"})j", {"look-ahead"}},
      {R"({"type": "string", "pattern": "(a)\\1"})", {"reference to a group"}},
      {R"({"type": "string", "pattern": "\\bword"})", {"word boundary"}},
      {R"({"type": "string", "pattern": "\\p{L}"})", {"Unicode property"}},
      {R"j({"type": "string", "pattern": "a)"})j", {"character 2"}},
      {R"({"type": "string", "pattern": "[b-a]"})", {"no range"}},
      {R"({"type": "string", "pattern": "(a"})", {"expected )"}},
      {R"({"type": "string", "pattern": "^a$b"})", {"at the end only"}},
      {R"({"type": "string", "pattern": "a", "maxLength": 3})", {"together are not supported"}},
      {R"({"type": "string", "minLength": 3, "maxLength": 2})", {"minLength 3 and maxLength 2"}},
      {R"({"type": "string", "minLength": -1})", {"minLength must be a whole number"}},
      {R"({"type": "array", "minItems": 3, "maxItems": 2})", {"minItems 3 and maxItems 2"}},
      {R"({"type": "integer", "minimum": 5, "maximum": 4})", {"no number is between"}},
      {R"({"type": "number", "minimum": 0.5, "maximum": 0.4})", {"no number is between"}},
      {R"({"type": "integer", "minimum": 1e30})", {"more than 18 digits"}},
      {R"({"type": "string", "pattern": "^a{3}$", "maxLength": 2})", {"no string has it"}},
      {R"({"$ref": "http://example.com/x"})", {"only references inside"}},
      {R"({"$ref": "#/nowhere"})", {"#/nowhere", "nothing at this place"}},
      {R"({"$ref": "#"})", {"left recursion"}},
      {R"({"allOf": [{"$ref": "#"}, {"type": "null"}]})", {"without end"}},
      {R"({"allOf": [{"type": "null"}, {"type": "string"}]})", {"no value is both"}},
      {R"({"allOf": [{"pattern": "a"}, {"pattern": "b"}]})", {"pattern is there twice"}},
      {R"({"allOf": [{"properties": {"a": {}}, "additionalProperties": false}, {"properties": {"b": {}}}]})",
       {"additionalProperties", "'b'"}},
      {R"({"enum": []})", {"enum must be a list"}},
      {R"({"enum": [1], "type": "string"})", {"no value of enum"}},
      {R"({"properties": []})", {"properties must be an object"}},
      {R"({"required": [1]})", {"required must be a list of names"}},
      {R"({"additionalProperties": false, "required": ["a"]})", {"allows no value"}},
      {R"({"type": "string", "maxLength": 100001})", {"maxLength 100001", "at most 100000"}},
      {R"({"properties": {"a": {"type": "string", "maxLength": 99999}, "b": {"type": "string", "maxLength": 99998}, "c": {"type": "string", "maxLength": 99997}}})",
       {"too large"}},
  };
  for (const auto& [schema, words] : cases) {
    SCOPED_TRACE(schema);
    try {
      Grammar::from_json_schema(schema, "s.json");
      ADD_FAILURE() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kUsage);
      EXPECT_EQ(std::string(e.what()).rfind("s.json: ", 0), 0u) << e.what();
      for (const std::string& word : words) {
        EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << word << ": " << e.what();
      }
    }
  }
  std::string deep = "{}";
  for (int i = 0; i < 70; ++i) deep = R"({"items": )" + deep + "}";
  expect_error(ErrorCode::kUsage, {"inside each other"}, [&] { Grammar::from_json_schema(deep); });
  expect_error(ErrorCode::kUsage, {"inside each other"},
               [] { Grammar::from_json_schema(std::string(100000, '[')); });
}

std::string list_of(int n, const std::function<std::string(int)>& item) {
  std::string list = "[";
  for (int i = 0; i < n; ++i) list += (i > 0 ? "," : "") + item(i);
  return list + "]";
}

// The time grows in proportion to the list, and at most one way to read the values is open.
TEST(JsonSchema, ListsMayBeLong) {
  const std::clock_t begin = std::clock();
  const std::string values = list_of(40000, [](int i) { return fmt::format("\"v{}\"", i); });
  const Grammar grammar = Grammar::from_json_schema("{\"enum\": " + values + "}");
  EXPECT_TRUE(allows(grammar, "\"v39999\""));
  EXPECT_TRUE(allows(grammar, "\"v7\""));
  EXPECT_EQ(verdict(grammar, "\"v6\"0"), Verdict::kNo);
  EXPECT_EQ(verdict(grammar, "\"v40000"), Verdict::kNo);
  EXPECT_EQ(verdict(grammar, "\"v5"), Verdict::kBeginning);
  expect_error(ErrorCode::kUsage, {"enum", "40000", "can't be compared"}, [&] {
    Grammar::from_json_schema("{\"allOf\": [{\"enum\": " + values + "}, {\"enum\": [0," +
                              values.substr(1) + "}]}");
  });
  // Each part adds a property, and all parts constrain the same one.
  const Grammar parts = Grammar::from_json_schema(
      "{\"allOf\": " +
      list_of(400,
              [](int i) {
                return fmt::format(R"({{"properties": {{"a{}": {{"type": "null"}},
                               "b": {{"maxLength": {}, "type": "string"}}}}}})",
                                   i, 500 - i);
              }) +
      "}");
  EXPECT_TRUE(allows(parts, R"({"a0":null,"b":"x"})"));
  EXPECT_EQ(verdict(parts, R"({"a0":1)"), Verdict::kNo);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 10);
}

// Each of these schemas is small or ordinary, and once made one of the steps quadratic, exponential
// or as deep as the text is long. The limit in seconds is far above the time they take, so that
// busy machines do not matter.
TEST(JsonSchema, CostsNoMoreThanItsLength) {
  const auto text = [](const std::string& part, size_t n) {
    std::string all;
    for (size_t i = 0; i < n; ++i) all += part;
    return all;
  };
  const auto object_of = [](int n, const std::string& name, const std::string& after = "") {
    std::string all;
    for (int i = 0; i < n; ++i)
      all += fmt::format(R"({}"{}{}{}": {{"type": "null"}})", i > 0 ? "," : "", name, i, after);
    return "{" + all + "}";
  };
  const std::string long_name = R"({"properties": {")" + text("a", 9000) + R"(": {}})";
  const std::string wide = R"("properties": )" + object_of(4000, "name");
  const std::string values = list_of(200000, [](int) { return std::string("0"); });
  const std::string nothing = list_of(2000, [](int) { return std::string("{}"); });
  const struct {
    std::string what, schema, error;  // an empty error means that the schema is valid
  } cases[] = {
      {"a long name", long_name + "}", ""},
      {"a long name beside others", long_name + R"(, "additionalProperties": true})",
       "more than 256 characters"},
      {"long names that differ early",
       R"({"properties": )" + object_of(200, "", text("b", 200)) +
           R"(, "additionalProperties": true})",
       "more than 20000 different beginnings"},
      {"many optional properties", "{" + wide + "}", ""},
      {"many optional properties beside others", "{" + wide + R"(, "additionalProperties": true})",
       ""},
      {"required often",
       "{" + wide + R"(, "required": )" +
           list_of(50000, [](int) { return std::string("\"name3999\""); }) + "}",
       ""},
      {"values beside alternatives", "{\"enum\": " + values + ", \"anyOf\": " + nothing + "}",
       "repeat too much"},
      {"types", R"({"type": )" + list_of(50000, [](int) { return std::string("\"null\""); }) + "}",
       "type is a list of 50000"},
      {"types twice",
       R"({"allOf": [{"type": "null"}, {"type": )" +
           list_of(50000, [](int) { return std::string("\"null\""); }) + "}]}",
       "type is a list of 50000"},
      {"references to itself",
       R"({"anyOf": )" +
           list_of(
               30,
               [](int) { return std::string(R"({"$ref": "#", "title": "x", "type": "null"})"); }) +
           "}",
       "inside each other"},
      {"a name that is in every place below it",
       R"({"properties": {")" + text("c", 100000) + R"(": {"properties": )" +
           object_of(4000, "name") + "}}}",
       ""},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    const std::clock_t begin = std::clock();
    std::string error;
    try {
      Grammar::from_json_schema(c.schema);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kUsage);
      EXPECT_LT(std::string(e.what()).size(), 1000u);
      error = e.what();
    }
    if (c.error.empty()) {
      EXPECT_EQ(error, "");
    } else {
      EXPECT_NE(error.find(c.error), std::string::npos) << error;
    }
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
#if defined(SNAPKV_SANITIZED)
    EXPECT_LT(seconds, 20);
#else
    EXPECT_LT(seconds, 2);
#endif
  }
}

TEST(JsonSchema, RulesWithOneWishAreNumbered) {
  const Grammar grammar = Grammar::from_json_schema(
      R"({"properties": {"a b": {"enum": [1]}, "a-b": {"enum": [2]}, "a_b": {"enum": [3]}},
          "additionalProperties": {"enum": [4]}})");
  EXPECT_TRUE(allows(grammar, R"({"a b":1,"a-b":2,"a_b":3,"a":4})")) << grammar.source();
  for (const char* text : {R"({"a b":2})", R"({"a-b":3})", R"({"a_b":1})", R"({"a b":4})"}) {
    EXPECT_FALSE(allows(grammar, text)) << text;
  }
}

// A model cannot fill its answer with white space.
TEST(JsonSchema, WhiteSpaceIsBounded) {
  const Grammar grammar = Grammar::json_object();
  EXPECT_TRUE(allows(grammar, "{\n\n                    }"));
  EXPECT_EQ(verdict(grammar, "{\n\n\n\n\n"), Verdict::kNo);
  EXPECT_TRUE(allows(grammar, "{  }"));  // white space before the end of an empty object
  EXPECT_EQ(verdict(grammar, "{\"a\":  "), Verdict::kNo);
  EXPECT_EQ(verdict(grammar, "{\"a\":1  "), Verdict::kNo);
  EXPECT_EQ(verdict(grammar, "{} "), Verdict::kNo);
  EXPECT_EQ(verdict(grammar, "[\n" + std::string(22, ' ')), Verdict::kNo);
  EXPECT_EQ(verdict(grammar, " {"), Verdict::kNo);
}

}  // namespace
}  // namespace snapkv::test
