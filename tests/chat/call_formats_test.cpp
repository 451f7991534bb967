// SPDX-License-Identifier: MIT
// Every row of the table of formats: calls as its models write them are found, however the answer
// is cut, the grammar of forced calls allows them and nothing damaged, and real templates write
// earlier calls so.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "chat/answer_parser.h"
#include "chat/call_history.h"
#include "chat/call_syntax.h"
#include "chat/conversation.h"
#include "snapkv/grammar.h"
#include "tests/chat/parsed_answer.h"

namespace snapkv::chat {
namespace {

Json function_of(const char* name, const char* parameters) {
  return {{"type", "function"},
          {"function",
           {{"name", name}, {"description", "It."}, {"parameters", Json::parse(parameters)}}}};
}

Tools offered_tools() {
  Tools tools;
  tools.choice = Tools::Choice::required;
  tools.list.push_back(function_of("get_weather", R"({"type": "object", "properties": {
      "city": {"type": "string"}, "days": {"type": "integer"}, "dry": {"type": "boolean"},
      "near": {"type": "array", "items": {"type": "string"}},
      "at": {"type": "object", "properties": {"lat": {"type": "number"}, "name": {"type": "string"}},
             "required": ["lat"]}},
      "required": ["city"], "additionalProperties": false})"));
  tools.list.push_back(function_of("stop", R"({"type": "object", "properties": {}})"));
  tools.list.back()["function"].erase("description");
  return tools;
}

Json call_of(const char* name, const char* arguments, const char* id = "snapkv001") {
  return {{"id", id},
          {"type", "function"},
          {"function", {{"name", name}, {"arguments", Json::parse(arguments)}}}};
}

/// One call, or several where the format has those.
Json sample_calls(const CallSyntax& syntax) {
  Json calls =
      Json::array({call_of("get_weather", R"({"city": "Oslo <b> \"x\"\n 東京 }]", "days": 3,
    "dry": true, "near": ["a, b", "c"], "at": {"lat": -1.5, "name": "here"}})")});
  if (syntax.one_call) return calls;
  calls.push_back(call_of("stop", "{}", "snapkv002"));
  calls.push_back(call_of("get_weather", R"({"city": ""})", "snapkv003"));
  return calls;
}

AnswerSyntax syntax_for(ToolFormat format) {
  AnswerSyntax syntax;
  syntax.tools = format;
  syntax.functions = offered_tools().schemas();
  return syntax;
}

/// Text and calls as JSON, whose spaces don't matter: ["text", {"name", "arguments"}, ...]
Json found_in(const AnswerSyntax& syntax, const std::string& text, size_t cut, bool by_bytes) {
  AnswerParser parser(syntax);
  Json all = Json::array();
  std::string arguments;
  const auto take = [&](const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) {
      if (piece.kind == Piece::Kind::tool_begin) {
        all.push_back({{"name", piece.text}, {"arguments", ""}});
      } else if (piece.kind == Piece::Kind::tool_arguments) {
        all.back()["arguments"] = all.back()["arguments"].get<std::string>() + piece.text;
      } else if (!all.empty() && all.back().is_string()) {
        all.back() = all.back().get<std::string>() + piece.text;
      } else {
        all.push_back(piece.text);
      }
    }
  };
  read_answer(parser, text, cut, by_bytes, take);
  for (Json& part : all) {
    if (part.is_object()) {
      const Json whole = Json::parse(part["arguments"].get<std::string>(), nullptr, false);
      if (!whole.is_discarded()) part["arguments"] = whole;  // else it breaks off
    }
  }
  return all;
}

Json expected_of(const std::string& text, const Json& calls) {
  Json all = Json::array();
  if (!text.empty()) all.push_back(text);
  for (const Json& call : calls) {
    all.push_back(
        {{"name", call["function"]["name"]}, {"arguments", call["function"]["arguments"]}});
  }
  return all;
}

TEST(CallFormats, CallsAreFoundHoweverTheAnswerIsCut) {
  for (const CallSyntax& row : call_syntaxes()) {
    SCOPED_TRACE(row.name);
    const Json calls = sample_calls(row);
    const std::string text = write_calls(row, calls);
    const AnswerSyntax syntax = syntax_for(row.format);
    for (size_t cut = 0; cut <= text.size(); ++cut) {
      ASSERT_EQ(found_in(syntax, text, cut, false), expected_of("", calls)) << text << "\n" << cut;
    }
    ASSERT_EQ(found_in(syntax, text, 0, true), expected_of("", calls)) << text;
    if (row.bare == '{') continue;  // such calls are the whole answer
    const std::string mark(row.bare == '[' && !row.first.empty() ? row.opening : "");
    const std::string answer = "I look.\n\n" + mark + text;
    for (size_t cut = 0; cut <= answer.size(); ++cut) {
      ASSERT_EQ(found_in(syntax, answer, cut, false), expected_of("I look.", calls)) << answer;
    }
    ASSERT_EQ(found_in(syntax, answer, 0, true), expected_of("I look.", calls)) << answer;
  }
}

// Line breaks and indentation differ between models, and outer marks are left out.
TEST(CallFormats, CallsAreFoundInOtherSpellings) {
  const std::string rome = R"({"city": "Rome", "days": 3})";
  const struct {
    ToolFormat format;
    std::string text;
  } cases[] = {
      {ToolFormat::glm,
       "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Rome</arg_value><arg_key>days"
       "</arg_key><arg_value>3</arg_value></tool_call>"},
      {ToolFormat::glm,
       "<tool_call>"
       R"({"name": "get_weather", "arguments": )" +
           rome + "}</tool_call>"},
      {ToolFormat::kimi, "<|tool_call_begin|>functions.get_weather:12<|tool_call_argument_begin|>" +
                             rome + "<|tool_call_end|>"},
      {ToolFormat::kimi,
       "<|tool_calls_section_begin|> <|tool_call_begin|>get_weather<|tool_call_argument_begin|> " +
           rome + " <|tool_call_end|> <|tool_calls_section_end|>"},
      {ToolFormat::deepseek_r1,
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>" + rome +
           "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
      {ToolFormat::deepseek,
       "<｜tool▁calls▁begin｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n" +
           rome + "\n```<｜tool▁call▁end｜>"},
      {ToolFormat::dsml,
       "<｜DSML｜invoke name=\"get_weather\"><｜DSML｜parameter name=\"city\" string=\"true\">Rome"
       "</｜DSML｜parameter><｜DSML｜parameter name=\"days\" string=\"false\">3</｜DSML｜parameter>"
       "</｜DSML｜invoke>"},
      {ToolFormat::command,
       "<|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": "
       "\"get_weather\", \"parameters\": " +
           rome + "}]<|END_ACTION|>"},
      {ToolFormat::apertus, "<|tools_prefix|>[{\"get_weather\":" + rome + "}]"},
      {ToolFormat::mistral_named, "[TOOL_CALLS]get_weather[CALL_ID]ab12[ARGS]" + rome},
      {ToolFormat::mistral_named,
       R"([TOOL_CALLS][{"name": "get_weather", "arguments": )" + rome + "}]"},
      {ToolFormat::granite,
       R"(<|tool_call|>[{"arguments": )" + rome + R"(, "name": "get_weather"}])"},
      {ToolFormat::gemma,
       "<|tool_call>call:get_weather{<|\"|>city<|\"|>:<|\"|>Rome<|\"|>, "
       "days: 3}<tool_call|>"},
      {ToolFormat::lfm2, "<|tool_call_start|>[get_weather(days=3, city='Rome')]<|tool_call_end|>"},
      {ToolFormat::minimax,
       "<minimax:tool_call><invoke name=\"get_weather\"><parameter name=\"city\">Rome</parameter>"
       "<parameter name=\"days\">3</parameter></invoke></minimax:tool_call>"},
      {ToolFormat::recipients, ">>>get_weather\n" + rome},
  };
  const Json expected = Json::array({{{"name", "get_weather"}, {"arguments", Json::parse(rome)}}});
  for (const auto& c : cases) {
    const AnswerSyntax syntax = syntax_for(c.format);
    for (size_t cut = 0; cut <= c.text.size(); ++cut) {
      Json found = found_in(syntax, c.text, cut, false);
      ASSERT_EQ(found.size(), 1u) << c.text << found;
      ASSERT_EQ(found[0]["name"], "get_weather") << c.text;
      const auto arguments = nlohmann::json::parse(found[0]["arguments"].dump());
      ASSERT_EQ(arguments, nlohmann::json::parse(rome)) << c.text;
    }
  }
}

// Other names than those of tools make no call, and ">>>all" is text.
TEST(CallFormats, OtherTextIsLeftAlone) {
  const struct {
    ToolFormat format;
    std::string text, prompt_end, expected;
  } cases[] = {
      {ToolFormat::glm, "<tool_call>other</tool_call>", "", "|<tool_call>other</tool_call>"},
      {ToolFormat::kimi, "a <|tool_call_begin|>b", "", "|a <|tool_call_begin|>b"},
      {ToolFormat::gemma, "<|tool_call>call:other{a:1}<tool_call|>", "",
       "|<|tool_call>call:other{a:1}<tool_call|>"},
      {ToolFormat::command_plus, "Action: run!", "", "|Action: run!"},
      {ToolFormat::recipients, "all\nHello\n>>> import os", ">>>", "|Hello\n>>> import os"},
      {ToolFormat::recipients, "all\nI look.\n>>>stop\n{}", ">>>", "|I look.|call stop({})"},
      {ToolFormat::recipients, "stop\n{}", "assistant\n\n>>>", "|call stop({})"},
      {ToolFormat::mistral_named, "[TOOL_CALLS]other[ARGS]{}", "", "|[TOOL_CALLS]other[ARGS]{}"},
  };
  for (const auto& c : cases) {
    AnswerSyntax syntax = syntax_for(c.format);
    syntax.prompt_end = c.prompt_end;
    expect_parsed(syntax, {c.format, c.text, c.expected});
  }
}

bool accepts(const std::string& gbnf, const std::string& text) {
  static const auto vocabulary = [] {
    std::vector<std::string> bytes;
    for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
    return std::make_shared<const GrammarVocabulary>(std::move(bytes), std::vector<int32_t>());
  }();
  GrammarMatcher matcher(Grammar::parse_schema_rules(gbnf), vocabulary);
  try {
    matcher.accept_text(text);
  } catch (const Error&) {
    return false;
  }
  return matcher.is_complete();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << text;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(CallFormats, GrammarsAllowCallsAndNothingDamaged) {
  for (const CallSyntax& row : call_syntaxes()) {
    SCOPED_TRACE(row.name);
    Tools tools = offered_tools();
    std::vector<std::string> warnings;
    const std::string gbnf = tool_grammar(tools, row.format, warnings);
    const Json calls = sample_calls(row);
    const std::string text = write_calls(row, calls);
    EXPECT_TRUE(accepts(gbnf, text)) << gbnf << text;
    EXPECT_FALSE(accepts(gbnf, text.substr(0, text.size() - 1))) << text;
    EXPECT_FALSE(accepts(gbnf, "I look.\n" + text));
    EXPECT_FALSE(accepts(gbnf, replaced(text, "get_weather", "get_rain")));
    EXPECT_FALSE(accepts(gbnf, replaced(text, "3", "many")));
    EXPECT_FALSE(accepts(gbnf, replaced(text, "days", "hours")));
    EXPECT_FALSE(accepts(gbnf, write_calls(row, Json::array({call_of("get_weather", "{}")}))));
    tools.parallel = false;
    const std::string one = tool_grammar(tools, row.format, warnings);
    EXPECT_TRUE(accepts(one, write_calls(row, Json::array({calls[0]}))));
    EXPECT_EQ(accepts(one, text), row.one_call);
    tools.function = "stop";
    const std::string stop = tool_grammar(tools, row.format, warnings);
    EXPECT_TRUE(accepts(stop, write_calls(row, Json::array({call_of("stop", "{}")}))));
    EXPECT_FALSE(accepts(stop, write_calls(row, Json::array({calls[0]}))));
    EXPECT_TRUE(warnings.empty());
  }
}

// What is damaged remains text, or is a call that breaks off; the answer's length does not matter.
TEST(CallFormats, TakesWhateverAModelWrites) {
  for (const CallSyntax& row : call_syntaxes()) {
    SCOPED_TRACE(row.name);
    const AnswerSyntax syntax = syntax_for(row.format);
    const std::string text = write_calls(row, sample_calls(row));
    for (size_t n = 0; n < text.size(); ++n) {  // a byte is missing, or the end
      std::string damaged = text;
      damaged.erase(n, 1);
      ASSERT_EQ(found_in(syntax, damaged, 0, true), found_in(syntax, damaged, n, false)) << damaged;
      damaged.resize(n);
      ASSERT_EQ(found_in(syntax, damaged, 0, true), found_in(syntax, damaged, n / 2, false))
          << damaged;
    }
    for (const std::string_view part : {row.opening, row.call_opening, row.marks[0], row.closing}) {
      if (part.empty()) continue;
      std::string many;
      for (int i = 0; i < 2000; ++i) many += part;
      (void)found_in(syntax, many, 7, true);
    }
  }
}

std::string template_source(const std::string& name) {
  const char* data = std::getenv("SNAPKV_TEST_DATA");
  if (data == nullptr) return "";
  std::ostringstream text;
  text << std::ifstream(std::string(data) + "/templates/" + name + ".jinja").rdbuf();
  return text.str();
}

std::string without_spaces(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  return text;
}

struct RealTemplate {
  const char* name;
  ToolFormat format;
};

constexpr RealTemplate kRealTemplates[] = {
    {"CohereForAI-c4ai-command-r-plus-tool_use", ToolFormat::command_plus},
    {"CohereForAI-c4ai-command-r7b-12-2024-tool_use", ToolFormat::command},
    {"GLM-4.6", ToolFormat::glm},
    {"GLM-4.7-Flash", ToolFormat::glm},
    {"GigaChat3.1-10B-A1.8B", ToolFormat::gigachat},
    {"HuggingFaceTB-SmolLM3-3B", ToolFormat::none},
    {"Kimi-K2-Instruct", ToolFormat::kimi},
    {"LFM2-8B-A1B", ToolFormat::lfm2},
    {"Mistral-Small-3.2-24B-Instruct-2506", ToolFormat::mistral_named},
    {"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", ToolFormat::hermes},
    {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", ToolFormat::hermes},
    {"Qwen-QwQ-32B", ToolFormat::hermes},
    {"Qwen-Qwen2.5-7B-Instruct", ToolFormat::hermes},
    {"Qwen-Qwen3-0.6B", ToolFormat::hermes},
    {"Qwen3-Coder", ToolFormat::coder},
    {"Qwen3.5-4B", ToolFormat::coder},
    {"StepFun3.5-Flash", ToolFormat::coder},
    {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", ToolFormat::deepseek_r1},
    {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", ToolFormat::deepseek_r1},
    {"deepseek-ai-DeepSeek-V3.1", ToolFormat::deepseek},
    {"fireworks-ai-llama-3-firefunction-v2", ToolFormat::firefunction},
    {"google-gemma-2-2b-it", ToolFormat::none},
    {"google-gemma-4-31B-it", ToolFormat::gemma},
    {"google-gemma-4-31B-it-interleaved", ToolFormat::gemma},
    {"ibm-granite-granite-3.3-2B-Instruct", ToolFormat::granite},
    {"llama-cpp-deepseek-r1", ToolFormat::deepseek_r1},
    {"llama-cpp-rwkv-world", ToolFormat::none},
    {"meetkai-functionary-medium-v3.1", ToolFormat::functionary},
    {"meetkai-functionary-medium-v3.2", ToolFormat::recipients},
    {"meta-llama-Llama-3.1-8B-Instruct", ToolFormat::llama3},
    {"meta-llama-Llama-3.2-3B-Instruct", ToolFormat::llama3},
    {"meta-llama-Llama-3.3-70B-Instruct", ToolFormat::llama3},
    {"microsoft-Phi-3.5-mini-instruct", ToolFormat::none},
    {"mistralai-Ministral-3-14B-Reasoning-2512", ToolFormat::mistral_named},
    {"mistralai-Mistral-Nemo-Instruct-2407", ToolFormat::mistral},
    {"moonshotai-Kimi-K2", ToolFormat::kimi},
    {"openai-gpt-oss-120b", ToolFormat::harmony},
    {"stepfun-ai-Step-3.5-Flash", ToolFormat::coder},
    {"unsloth-Apriel-1.5", ToolFormat::apriel},
    {"unsloth-mistral-Devstral-Small-2507", ToolFormat::mistral_named},
};

class RealTemplates : public ::testing::TestWithParam<RealTemplate> {
 protected:
  /// A question, text and two calls, their results, and perhaps an answer and a question.
  static Conversation conversation(const char* text, bool goes_on) {
    Conversation c;
    c.tools = offered_tools();
    c.tools.choice = Tools::Choice::automatic;
    c.messages.push_back({{"role", "user"}, {"content", "THE QUESTION"}});
    c.messages.push_back({{"role", "assistant"},
                          {"content", text},
                          {"tool_calls",
                           {call_of("get_weather", R"({"city": "Rome", "days": 3})"),
                            call_of("get_weather", R"({"city": "Oslo"})", "snapkv002")}}});
    c.messages.push_back(
        {{"role", "tool"}, {"tool_call_id", "snapkv001"}, {"content", "RESULT ONE"}});
    c.messages.push_back(
        {{"role", "tool"}, {"tool_call_id", "snapkv002"}, {"content", "RESULT TWO"}});
    if (goes_on) {
      c.messages.push_back({{"role", "assistant"}, {"content", "AN ANSWER"}});
      c.messages.push_back({{"role", "user"}, {"content", "AND ANOTHER"}});
    }
    return c;
  }

  std::string rendered(const Conversation& conversation, const std::string& source) {
    const std::optional<ChatTemplate> tmpl = ChatTemplate::parse(source, GetParam().name);
    const Json variables = {{"bos_token", "<BOS>"}, {"eos_token", "<EOS>"}};
    warnings_.clear();
    return render(conversation, {tmpl, tmpl, variables, ""}, warnings_).text;
  }

  std::vector<std::string> warnings_;
};

TEST_P(RealTemplates, ShowToolsCallsAndResults) {
  const std::string source = template_source(GetParam().name);
  if (source.empty()) GTEST_SKIP() << "no such template in SNAPKV_TEST_DATA";
  EXPECT_EQ(tool_format(source), GetParam().format);
  for (const char* text : {"", "LET ME LOOK"}) {
    for (const bool goes_on : {false, true}) {
      SCOPED_TRACE(std::string(text) + (goes_on ? " and on" : ""));
      const std::string prompt = rendered(conversation(text, goes_on), source);
      const size_t question = prompt.find("THE QUESTION");
      ASSERT_NE(question, std::string::npos) << prompt;
      EXPECT_NE(prompt.find("dry"), std::string::npos) << prompt;  // the tools
      size_t at = question;
      std::vector<std::string> marks = {"Rome", "Oslo"};
      // Mistral's older templates show calls only, and gpt-oss's no reasoning of earlier turns
      const bool shows_text = find_syntax(GetParam().format) == nullptr
                                  ? !goes_on || GetParam().format == ToolFormat::none
                                  : warnings_.empty();
      if (*text != 0 && shows_text) marks.insert(marks.begin(), text);
      if (goes_on) marks.insert(marks.end(), {"AN ANSWER", "AND ANOTHER"});
      for (const std::string& mark : marks) {
        at = prompt.find(mark, at);
        ASSERT_NE(at, std::string::npos) << mark << " in " << prompt;
      }
      const size_t one = prompt.find("RESULT ONE", question), two = prompt.find("RESULT TWO", one);
      EXPECT_LT(prompt.find("Rome", question), one) << prompt;
      EXPECT_NE(two, std::string::npos) << prompt;
    }
  }
}

// What a template writes of an earlier call is what its models have learned to write.
TEST_P(RealTemplates, WriteCallsAsTheTableSays) {
  const std::string source = template_source(GetParam().name);
  const CallSyntax* const syntax = find_syntax(GetParam().format);
  if (source.empty() || syntax == nullptr) GTEST_SKIP() << "no such template, or no own format";
  Conversation c = conversation("", false);
  Json& calls = c.messages[1]["tool_calls"];
  if (syntax->one_call) {
    calls.erase(1);
    c.messages.erase(3);
  }
  const std::string with_ids = without_spaces(rendered(c, source));
  const std::string prompt =
      std::regex_replace(with_ids, std::regex(R"re(,"id":"snapkv00\d")re"), "");
  std::string expected = without_spaces(write_calls(*syntax, calls));
  if (syntax->format == ToolFormat::mistral_named &&
      source.find("[CALL_ID]") != std::string::npos) {
    expected = R"([TOOL_CALLS]get_weather[CALL_ID]snapkv001[ARGS]{"city":"Rome","days":3})";
  }
  EXPECT_NE(prompt.find(expected), std::string::npos) << expected << " in " << prompt;
}

TEST(CallHistory, NumbersKimisCalls) {
  const ChatTemplate tmpl = ChatTemplate::parse(
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls %}"
      "<|tool_call_begin|>{{ c['id'] }}<|tool_call_argument_begin|>{{ c.function.arguments | "
      "tojson "
      "}}{% endfor %}{% if m.tool_call_id %} of {{ m.tool_call_id }}{% endif %}{% endfor %}",
      "test");
  Json messages = Json::array({{{"role", "user"}, {"content", "go"}}});
  for (const char* id : {"call_a", "call_b"}) {
    messages.push_back({{"role", "assistant"},
                        {"content", ""},
                        {"tool_calls", {call_of("get_weather", R"({"city": "Rome"})", id)}}});
    messages.push_back({{"role", "tool"}, {"tool_call_id", id}, {"content", "sun"}});
  }
  std::vector<std::string> warnings;
  const Json fitted =
      fit_calls(tmpl, Json::object(), messages, *find_syntax(ToolFormat::kimi), warnings);
  EXPECT_EQ(fitted[1]["tool_calls"][0]["id"], "functions.get_weather:0");
  EXPECT_EQ(fitted[2]["tool_call_id"], "functions.get_weather:0");
  EXPECT_EQ(fitted[3]["tool_calls"][0]["id"], "functions.get_weather:1");
  EXPECT_EQ(fitted[4]["tool_call_id"], "functions.get_weather:1");
}

INSTANTIATE_TEST_SUITE_P(All, RealTemplates, ::testing::ValuesIn(kRealTemplates),
                         [](const auto& parameter) {
                           std::string name = parameter.param.name;
                           std::erase_if(name, [](char c) { return std::isalnum(c) == 0; });
                           return name;
                         });

}  // namespace
}  // namespace snapkv::chat
