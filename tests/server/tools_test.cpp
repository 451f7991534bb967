// SPDX-License-Identifier: MIT
// Tools of requests, the formats of real templates, and the grammars of calls that must be made.
#include "server/api/tools.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "server/api/answer_parser.h"
#include "server/api/api_error.h"
#include "snapkv/grammar.h"
#include "tests/support/test_models.h"

namespace snapkv::server {
namespace {

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(Tools, FormatIsFoundInRealTemplates) {
  const char* data = std::getenv("SNAPKV_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "SNAPKV_TEST_DATA is not set";
  const std::pair<const char*, ToolFormat> kTemplates[] = {
      {"Qwen-Qwen2.5-7B-Instruct", ToolFormat::hermes},
      {"Qwen-Qwen3-0.6B", ToolFormat::hermes},
      {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", ToolFormat::hermes},
      {"meta-llama-Llama-3.1-8B-Instruct", ToolFormat::llama3},
      {"meta-llama-Llama-3.2-3B-Instruct", ToolFormat::llama3},
      {"meta-llama-Llama-3.3-70B-Instruct", ToolFormat::llama3},
      {"mistralai-Mistral-Nemo-Instruct-2407", ToolFormat::mistral},
      {"unsloth-mistral-Devstral-Small-2507", ToolFormat::mistral},
      {"google-gemma-2-2b-it", ToolFormat::none},
      {"microsoft-Phi-3.5-mini-instruct", ToolFormat::none},
  };
  for (const auto& [name, format] : kTemplates) {
    const std::string source = read(std::string(data) + "/templates/" + name + ".jinja");
    ASSERT_FALSE(source.empty()) << name;
    EXPECT_EQ(tool_format(source), format) << name;
  }
}

Tools tools_of(const std::string& choice) {
  const Json body = Json::parse(R"({"tools": [
    {"type": "function", "function": {"name": "get_weather", "parameters": {
      "type": "object", "properties": {"city": {"$ref": "#/$defs/city"}}, "required": ["city"],
      "additionalProperties": false, "$defs": {"city": {"enum": ["Rome", "root"]}}}}},
    {"type": "function", "function": {"name": "stop", "description": "Ends"}}],
    "tool_choice": )" + choice + "}");
  return read_tools(Fields(body));
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

TEST(Tools, GrammarIsThatOfTheFormat) {
  const std::string call = R"({"name": "get_weather", "arguments": {"city": "Rome"}})";
  const std::string hermes = tool_grammar(tools_of("\"required\""), ToolFormat::hermes);
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
  EXPECT_FALSE(accepts(tool_grammar(one, ToolFormat::mistral), "[" + call + "]"));
  EXPECT_TRUE(
      accepts(tool_grammar(one, ToolFormat::mistral), R"([{"name": "stop", "arguments": {}}])"));
  EXPECT_TRUE(accepts(tool_grammar(tools_of("\"required\""), ToolFormat::llama3),
                      R"({"name": "get_weather", "parameters": {"city": "root"}})"));
}

// What a grammar allows is what the parser takes for a call.
TEST(Tools, CallsOfTheGrammarAreParsed) {
  const std::pair<ToolFormat, std::string> kCalls[] = {
      {ToolFormat::hermes, "<tool_call>\n{\"name\": \"stop\", \"arguments\": {}}\n</tool_call>"},
      {ToolFormat::llama3, "{\"name\": \"stop\", \"parameters\": {}}"},
      {ToolFormat::mistral, "[{\"name\": \"stop\", \"arguments\": {}}]"}};
  for (const auto& [format, text] : kCalls) {
    const Tools tools = tools_of("\"required\"");
    EXPECT_TRUE(accepts(tool_grammar(tools, format), text)) << text;
    AnswerSyntax syntax;
    syntax.tools = format;
    syntax.tool_names = tools.names();
    AnswerParser parser(syntax);
    std::vector<Piece> pieces = parser.push(text);
    for (const Piece& piece : parser.finish()) pieces.push_back(piece);
    ASSERT_EQ(pieces.size(), 2u) << text;
    EXPECT_EQ(pieces[0].kind, Piece::Kind::tool_begin);
    EXPECT_EQ(pieces[0].text, "stop");
    EXPECT_EQ(pieces[1].text, "{}");
  }
}

TEST(Tools, RefusesWhatIsNone) {
  const std::pair<const char*, const char*> kWrong[] = {
      {R"({"tools": {}})", "'tools' must be an array, not an object"},
      {R"({"tools": [{"type": "web_search"}]})", "'tools[0].type' must be \"function\""},
      {R"({"tools": [{"type": "function"}]})", "'tools[0].function' is missing"},
      {R"({"tools": [{"type": "function", "function": {"name": "a b"}}]})",
       "'tools[0].function.name' must be 1 to 64 letters"},
      {R"({"tool_choice": "required"})", "\"required\" needs 'tools'"},
      {R"({"tool_choice": "maybe"})", "'tool_choice' must be none, auto, required"},
      {R"({"tool_choice": {"type": "function", "function": {"name": "f"}}})",
       "there is no tool 'f'"},
      {R"({"functions": []})", "deprecated"},
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
