// SPDX-License-Identifier: MIT
// The tools of requests, and the grammars for required calls.
#include "server/api/tools.h"

#include <gtest/gtest.h>

#include <ctime>
#include <random>

#include "chat/answer_parser.h"
#include "chat/field_error.h"
#include "chat/parameter_types.h"
#include "server/api/api_error.h"
#include "snapkv/grammar.h"
#include "tests/support/test_models.h"

namespace snapkv::server {

using namespace chat;

namespace {

Tools tools_of(const std::string& choice) {
  const Json body = Json::parse(R"({"tools": [
    {"type": "function", "function": {"name": "get_weather", "parameters": {
      "type": "object", "properties": {"city": {"$ref": "#/$defs/city"}}, "required": ["city"],
      "additionalProperties": false, "$defs": {"city": {"enum": ["Rome", "root"]}}}}},
    {"type": "function", "function": {"name": "stop", "description": "Ends"}}],
    "tool_choice": )" + choice + "}");
  return read_tools(Fields(body));
}

std::string grammar_of(const Tools& tools, ToolFormat format) {
  std::vector<std::string> warnings;
  return tool_grammar(tools, format, warnings);
}

bool accepts(const std::string& gbnf, const std::string& text) {
  static const auto vocabulary =
      std::make_shared<const GrammarVocabulary>(test::load_model("needle")->tokenizer());
  GrammarMatcher matcher(Grammar::parse(gbnf), vocabulary);
  try {
    matcher.accept_text(text);
  } catch (const Error&) {
    return false;
  }
  return matcher.is_complete();
}

// Mistral's templates refuse other ids.
TEST(Tools, IdsOfCallsAreWhatTheTemplateTakes) {
  EXPECT_EQ(tool_call_id(ToolFormat::mistral).size(), 9u);
  EXPECT_EQ(tool_call_id(ToolFormat::mistral_named).size(), 9u);
  EXPECT_TRUE(tool_call_id(ToolFormat::hermes).starts_with("call_"));
}

TEST(Tools, GrammarIsThatOfTheFormat) {
  const std::string call = R"({"name": "get_weather", "arguments": {"city": "Rome"}})";
  const std::string hermes = grammar_of(tools_of("\"required\""), ToolFormat::hermes);
  EXPECT_TRUE(accepts(hermes, "<tool_call>\n" + call + "\n</tool_call>")) << hermes;
  EXPECT_TRUE(accepts(
      hermes, "<tool_call>\n" + call + "\n</tool_call>\n<tool_call>\n" + call + "\n</tool_call>"));
  EXPECT_FALSE(accepts(hermes, call));
  EXPECT_FALSE(accepts(hermes, R"(<tool_call>
{"name": "get_weather", "arguments": {"city": "Oslo"}}
</tool_call>)"));
  EXPECT_FALSE(accepts(hermes, R"(<tool_call>
{"name": "other", "arguments": {}}
</tool_call>)"));
  const Tools one = tools_of(R"({"type": "function", "function": {"name": "stop"}})");
  EXPECT_FALSE(accepts(grammar_of(one, ToolFormat::mistral), "[" + call + "]"));
  EXPECT_TRUE(
      accepts(grammar_of(one, ToolFormat::mistral), R"([{"name": "stop", "arguments": {}}])"));
  EXPECT_TRUE(accepts(grammar_of(tools_of("\"required\""), ToolFormat::llama3),
                      R"({"name": "get_weather", "parameters": {"city": "root"}})"));
}

TEST(Tools, GrammarOfACallThatHasBegun) {
  std::vector<std::string> notes;
  const Tools tools = tools_of("\"auto\"");
  const std::string hermes = begun_call_grammar(tools, ToolFormat::hermes, notes);
  const std::string rome = R"({"city": "Rome"})", oslo = R"({"city": "Oslo"})";
  EXPECT_TRUE(accepts(hermes, "get_weather: " + rome + "}")) << hermes;
  EXPECT_TRUE(accepts(hermes, "get_weather:" + rome + "\n}\n```\nThat is all."));
  EXPECT_TRUE(accepts(hermes, "get_weather:" + rome + R"(, "id": 1})"));
  EXPECT_TRUE(accepts(hermes, "get_weather" + rome + "</function>"));
  EXPECT_TRUE(accepts(hermes, "stop: {}}"));
  EXPECT_FALSE(accepts(hermes, "get_weather: " + rome + "\n</tool_call>"));
  EXPECT_FALSE(accepts(hermes, "get_weather: " + oslo + "}"));
  EXPECT_FALSE(accepts(hermes, "get_weather: " + rome));  // the call's own brace is missing
  EXPECT_FALSE(accepts(hermes, "get_weather: \"Rome\"}"));
  EXPECT_FALSE(accepts(hermes, "other: {}}"));
  const std::string marked = R"(<tool_call>
{"name": "get_weather", "arguments": )";
  EXPECT_TRUE(accepts(hermes, marked + rome + "}\n</tool_call>\nDone."));
  EXPECT_FALSE(accepts(hermes, marked + oslo + "}\n</tool_call>"));
  const std::string llama3 = begun_call_grammar(tools, ToolFormat::llama3, notes);
  EXPECT_TRUE(accepts(llama3, "get_weather: " + rome + "}"));
  EXPECT_FALSE(accepts(llama3, marked + rome + "}"));
  EXPECT_TRUE(notes.empty());

  const Json body = Json::parse(R"({"tools": [{"type": "function", "function": {"name": "go",
    "parameters": {"type": "object", "properties": {"to": {"$ref": "#/$defs/missing"}}}}}]})");
  const std::string any = begun_call_grammar(read_tools(Fields(body)), ToolFormat::hermes, notes);
  EXPECT_TRUE(accepts(any, R"(go: {"to": [1, {"a": null}]}})"));
  EXPECT_FALSE(accepts(any, R"(go: {"to": """x"""}})"));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(notes[0].starts_with("the arguments of go may be any object")) << notes[0];
}

Tools coder_tools() {
  const Json body = Json::parse(R"({"tools": [{"type": "function", "function": {"name": "plan",
    "parameters": {"type": "object", "properties": {
      "city": {"type": "string"}, "days": {"$ref": "#/$defs/days"}, "kind": {"enum": ["a<b", "c"]},
      "trip": {"type": "object", "properties": {"by": {"enum": ["car"]}}, "required": ["by"]},
      "dry": {"type": "boolean"}, "note": {"type": ["null", "string"]}},
      "required": ["city", "days", "kind", "trip", "extra"],
      "$defs": {"days": {"type": "integer", "minimum": 1, "maximum": 9}}}}}],
    "tool_choice": "required"})");
  return read_tools(Fields(body));
}

std::string coder_call(const std::string& city, const std::string& days, const std::string& kind,
                       const std::string& rest = "") {
  return "<tool_call>\n<function=plan>\n<parameter=city>\n" + city +
         "\n</parameter>\n<parameter=days>\n" + days + "\n</parameter>\n<parameter=kind>\n" + kind +
         "\n</parameter>\n<parameter=trip>\n{\"by\": \"car\"}\n</parameter>\n" + rest +
         "<parameter=extra>\nx\n</parameter>\n</function>\n</tool_call>";
}

TEST(Tools, GrammarOfBareParameters) {
  const std::string gbnf = grammar_of(coder_tools(), ToolFormat::coder);
  EXPECT_TRUE(accepts(gbnf, coder_call("Rome", "3", "c"))) << gbnf;
  EXPECT_TRUE(accepts(gbnf, coder_call("Rome", "3", "c") + "\n" + coder_call("", "1", "a<b")));
  for (const char* city : {"a\n\nb", "<", "</parameter", "\n", "<parameter=days>", "\n</par</param",
                           "x\n<\n</p", "Zürich 東京"}) {
    EXPECT_TRUE(accepts(gbnf, coder_call(city, "3", "c"))) << city;
  }
  EXPECT_TRUE(accepts(gbnf, coder_call("R", "3", "c",
                                       "<parameter=dry>\nfalse\n</parameter>\n"
                                       "<parameter=note>\nnull\n</parameter>\n")));
  for (const char* city : {"a</parameter>b", "a\n</parameter>", "</parameter>"}) {
    EXPECT_FALSE(accepts(gbnf, coder_call(city, "3", "c"))) << city;
  }
  EXPECT_FALSE(accepts(gbnf, coder_call("R", "10", "c")));
  EXPECT_FALSE(accepts(gbnf, coder_call("R", "\"3\"", "c")));
  EXPECT_FALSE(accepts(gbnf, coder_call("R", "3", "b")));
  EXPECT_FALSE(accepts(gbnf, coder_call("R", "3", "c", "<parameter=dry>\nmaybe\n</parameter>\n")));
  const auto refused = [](const std::string& parameters) {
    const Json body = Json::parse(R"({"tools": [{"type": "function", "function": {"name": "f",
      "parameters": )" + parameters +
                                  "}}]}");
    try {
      (void)grammar_of(read_tools(Fields(body)), ToolFormat::coder);
    } catch (const FieldError& e) {
      EXPECT_EQ(e.field, "tools");
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(refused(R"({"anyOf": []})").find("parameters of f: this model writes"),
            std::string::npos);
  EXPECT_NE(refused(R"({"properties": {"a>b": {}}})").find("\"a>b\" can't be written"),
            std::string::npos);
  const std::string none =
      refused(R"({"properties": {"a": {"type": "integer", "minimum": 5, "maximum": 4}}})");
  EXPECT_NE(none.find("parameters of f: 'a': "), std::string::npos) << none;
  EXPECT_NE(none.find("no number is between"), std::string::npos) << none;
}

/// A random text of the grammar, which often comes close to the ends of values.
std::string random_text(GrammarMatcher matcher, std::mt19937& random) {
  const std::string pieces[] = {
      "\n</parameter>\n",         "</parameter>", "\n</para", "<", "\n", "a", "<parameter=city>\n",
      "</function>\n</tool_call>"};
  std::string text;
  std::vector<uint64_t> mask;
  while (matcher.can_continue() && !(matcher.is_complete() && random() % 2 == 0)) {
    std::string piece = pieces[random() % std::size(pieces)];
    try {
      matcher.accept_text(piece);
    } catch (const Error&) {
      matcher.mask(mask);
      std::string allowed;
      for (size_t byte = 0; byte < 128; ++byte) {
        if ((mask[byte / 64] >> (byte % 64) & 1) != 0) allowed += static_cast<char>(byte);
      }
      piece = allowed.at(random() % allowed.size());
      matcher.accept_text(piece);
    }
    text += piece;
  }
  return text;
}

// For every text that the grammar allows, the parser finds calls whose arguments fit the schema.
TEST(Tools, BareParametersOfTheGrammarAreArguments) {
  const Tools tools = coder_tools();
  std::vector<std::string> bytes;
  for (int byte = 0; byte < 128; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  const GrammarMatcher matcher(
      Grammar::parse(grammar_of(tools, ToolFormat::coder)),
      std::make_shared<const GrammarVocabulary>(std::move(bytes), std::vector<int32_t>()));
  std::mt19937 random(17);
  for (int i = 0; i < 200; ++i) {
    const std::string text = random_text(matcher, random);
    SCOPED_TRACE(text);
    AnswerSyntax syntax;
    syntax.tools = ToolFormat::coder;
    syntax.functions = tools.schemas();
    AnswerParser parser(syntax);
    std::vector<Piece> pieces = parser.push(text);
    for (const Piece& piece : parser.finish()) pieces.push_back(piece);
    ASSERT_GE(pieces.size(), 2u);
    ASSERT_EQ(pieces.size() % 2, 0u);
    for (size_t p = 0; p < pieces.size(); p += 2) {
      ASSERT_EQ(pieces[p].kind, Piece::Kind::tool_begin);
      ASSERT_EQ(pieces[p + 1].kind, Piece::Kind::tool_arguments);
      const Json arguments = Json::parse(pieces[p + 1].text, nullptr, false);
      ASSERT_TRUE(arguments.is_object()) << pieces[p + 1].text;
      EXPECT_TRUE(arguments.at("city").is_string());
      EXPECT_TRUE(arguments.at("days").is_number_integer());
      EXPECT_TRUE(arguments.at("kind") == "a<b" || arguments.at("kind") == "c");
      EXPECT_EQ(arguments.at("trip"), Json::parse(R"({"by": "car"})"));
      EXPECT_TRUE(arguments.contains("extra"));
      EXPECT_TRUE(!arguments.contains("dry") || arguments["dry"].is_boolean());
    }
  }
}

// The parser recognizes every call that a grammar allows.
TEST(Tools, CallsOfTheGrammarAreParsed) {
  const std::pair<ToolFormat, std::string> kCalls[] = {
      {ToolFormat::hermes, "<tool_call>\n{\"name\": \"stop\", \"arguments\": {}}\n</tool_call>"},
      {ToolFormat::llama3, "{\"name\": \"stop\", \"parameters\": {}}"},
      {ToolFormat::mistral, "[{\"name\": \"stop\", \"arguments\": {}}]"},
      {ToolFormat::coder, "<tool_call>\n<function=stop>\n</function>\n</tool_call>"}};
  for (const auto& [format, text] : kCalls) {
    const Tools tools = tools_of("\"required\"");
    EXPECT_TRUE(accepts(grammar_of(tools, format), text)) << text;
    AnswerSyntax syntax;
    syntax.tools = format;
    syntax.functions = tools.schemas();
    AnswerParser parser(syntax);
    std::vector<Piece> pieces = parser.push(text);
    for (const Piece& piece : parser.finish()) pieces.push_back(piece);
    ASSERT_EQ(pieces.size(), 2u) << text;
    EXPECT_EQ(pieces[0].kind, Piece::Kind::tool_begin);
    EXPECT_EQ(pieces[0].text, "stop");
    EXPECT_EQ(pieces[1].text, "{}");
  }
}

/// The error for a grammar of a function with these parameters, or "" if there is none.
std::string refusal(const Json& parameters, ToolFormat format, int n_tools = 1) {
  Tools tools;
  tools.choice = Tools::Choice::required;
  for (int i = 0; i < n_tools; ++i) {
    tools.list.push_back(
        {{"type", "function"},
         {"function", {{"name", "f" + std::to_string(i)}, {"parameters", parameters}}}});
  }
  try {
    (void)grammar_of(tools, format);
  } catch (const FieldError& e) {
    EXPECT_EQ(e.field, "tools");
    return e.what();
  }
  return "";
}

// Ten references of a schema to itself are 10^32 ways to the same types.
TEST(Tools, ReferencesAreFollowedOnce) {
  const auto begin = std::clock();
  Json refers = {{"anyOf", Json::array()}};
  for (int i = 0; i < 10; ++i) refers["anyOf"].push_back({{"$ref", "#/properties/x"}});
  const Json parameters = {
      {"type", "object"},
      {"properties",
       {{"x", refers},
        {"days", {{"$ref", "#/$defs/days"}}},
        {"list", {{"oneOf", {{{"$ref", "#/$defs/days"}}, {{"type", "array"}}}}}}}},
      {"$defs", {{"days", {{"type", "integer"}}}}}};
  EXPECT_EQ(schema_types(refers, parameters), kAllTypes);
  EXPECT_EQ(schema_types(parameters["properties"]["days"], parameters), kInteger);
  EXPECT_EQ(schema_types(parameters["properties"]["list"], parameters), kInteger | kArray);
  EXPECT_EQ(refusal(parameters, ToolFormat::coder), "");
  AnswerSyntax syntax;
  syntax.tools = ToolFormat::coder;
  syntax.functions = {{"f", parameters}};
  AnswerParser parser(syntax);
  const std::vector<Piece> pieces =
      parser.push("<tool_call><function=f><parameter=x>1</parameter></function></tool_call>");
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[1].text, R"({"x": 1})");
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 5);
}

// All parameters could refer to a large schema; it is read only for those that do, and only a
// limited number of times.
TEST(Tools, GrammarsOfManySchemasAreBounded) {
  const auto begin = std::clock();
  Json parameters = {
      {"type", "object"},
      {"properties", Json::object()},
      {"$defs",
       {{"days", {{"type", "integer"}}}, {"large", {{"description", std::string(900'000, 'x')}}}}}};
  Json& properties = parameters["properties"];
  for (int i = 0; i < 200; ++i) properties["p" + std::to_string(i)] = {{"type", "integer"}};
  properties["days"] = {{"$ref", "#/$defs/days"}};
  EXPECT_EQ(refusal(parameters, ToolFormat::coder), "");
  for (auto& property : properties) property = {{"$ref", "#/$defs/days"}};
  const std::string often = refusal(parameters, ToolFormat::coder);
  EXPECT_NE(often.find("the parameters of f0: 'p9': schema: too large: "), std::string::npos)
      << often;
  EXPECT_NE(often.find("more than 8 MiB"), std::string::npos) << often;
  const Json large = {{"type", "object"}, {"description", std::string(900'000, 'x')}};
  EXPECT_EQ(refusal(large, ToolFormat::hermes), "");
  const std::string many = refusal(large, ToolFormat::hermes, 12);
  EXPECT_NE(many.find("the parameters of f9: too large: "), std::string::npos) << many;
  Json names = Json::array();
  for (int i = 0; i < 200'000; ++i) names.push_back("name" + std::to_string(i % 150'000));
  const std::string required = refusal({{"required", names}}, ToolFormat::coder);
  EXPECT_NE(required.find("too large: the rules of all tools have more than 4 MiB"),
            std::string::npos)
      << required;
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 5);
}

TEST(Tools, RefusesWhatIsNone) {
  const std::pair<const char*, const char*> kWrong[] = {
      {R"({"tools": {}})", "'tools' must be an array, not an object"},
      {R"({"tools": [{"type": "web_search"}]})", "'tools[0].type' must be function or custom"},
      {R"({"tools": [{"type": "function"}]})", "'tools[0].function' is missing"},
      {R"({"tools": [{"type": "function", "function": {"name": "a b"}}]})",
       "'tools[0].function.name' must be 1 to 128 letters"},
      {R"({"tool_choice": "required"})", "\"required\" needs 'tools'"},
      {R"({"tool_choice": "maybe"})", "'tool_choice' must be none, auto, required"},
      {R"({"tool_choice": {"type": "function", "function": {"name": "f"}}})",
       "there is no tool 'f'"},
      {R"({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto",
        "tools": [{"type": "function", "function": {"name": "f"}}]}}})",
       "there is no tool 'f'"},
  };
  for (const auto& [body, expected] : kWrong) {
    try {
      (void)read_tools(Fields(Json::parse(body)));
      ADD_FAILURE() << body;
    } catch (const ApiError& e) {
      EXPECT_EQ(e.status, 400);
      EXPECT_NE(std::string(e.what()).find(expected), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace snapkv::server
