// SPDX-License-Identifier: MIT
// Calls are found in every form that models write, for every cut of the answer, and text that
// only mentions a call stays text.
#include <gtest/gtest.h>

#include <chrono>

#include "chat/answer_parser.h"
#include "chat/call_forms.h"
#include "tests/chat/parsed_answer.h"

namespace snapkv::chat {
namespace {

AnswerSyntax weather_syntax(ToolFormat format = ToolFormat::hermes) {
  AnswerSyntax syntax;
  syntax.tools = format;
  syntax.any_form = true;
  syntax.functions = {
      {"get", Json::parse(R"({"type": "object", "properties": {"city": {"type": "string"},
        "days": {"type": "integer"}, "kind": {"enum": ["wind", "rain"]},
        "where": {"type": ["object", "null"], "properties": {"lat": {"type": "number"}},
        "required": ["lat"], "additionalProperties": false}, "tags": {"items": {"type": "string"}}},
        "required": ["city"]})")},
      {"get_all", Json::parse(R"({"type": "object", "properties": {}})")},
      {"write", Json::parse(R"({"type": "object", "properties": {"path": {"type": "string"},
        "content": {"type": "string"}}, "required": ["path", "content"]})")}};
  return syntax;
}

void expect_all(const AnswerSyntax& syntax, const std::vector<std::array<std::string, 2>>& cases) {
  for (const auto& [text, expected] : cases) {
    expect_parsed(syntax, {syntax.tools, text, expected});
  }
}

const std::string kRome = "|call get({\"city\":\"Rome\"})";

struct FormCase {
  std::string form;
  std::string text, expected;
};

/// The forms of docs/server.md.
const std::vector<FormCase>& form_cases() {
  static const std::vector<FormCase> all = {
      {"bare", "{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}", kRome},
      {"bare", "[{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}, {\"name\": \"get_all\"}]",
       kRome + "|call get_all({})"},
      {"bare", "[get(city='Rome', days=3), get_all()]",
       "|call get({\"city\":\"Rome\",\"days\":3})|call get_all({})"},
      {"fenced", "```json\n{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}\n```", kRome},
      {"fenced", "```\n{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}\n```\n", kRome},
      {"tool_call",
       "<tool_call>[{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}]</tool_call>", kRome},
      {"tools", "<tools>\n{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}\n</tools>", kRome},
      {"tool_response",
       "<tool_response>\n{\"name\": \"get\", \"arguments\": {\"city\": "
       "\"Rome\"}}\n</tool_response>",
       kRome},
      {"phi, granite",
       "<|tool_call|>[{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}]<|/tool_call|>", kRome},
      {"phi, granite", "<|tool_call|>[{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}]",
       kRome},
      {"mistral", "[TOOL_CALLS][{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}]", kRome},
      {"mistral", "[TOOL_CALLS]get[ARGS]{\"city\": \"Rome\"}[TOOL_CALLS]get_all{}",
       kRome + "|call get_all({})"},
      {"python_tag", "<|python_tag|>{\"name\": \"get\", \"parameters\": {\"city\": \"Rome\"}}",
       kRome},
      {"lfm2", "<|tool_call_start|>[get(city=\"Rome\")]<|tool_call_end|>", kRome},
      {"function",
       "<function=get>\n<parameter=city>\nRome\n</parameter>\n</function>\n<function=get_all>\n"
       "</function>",
       kRome + "|call get_all({})"},
      {"function", "<function=get>{\"city\": \"Rome\"}</function>", kRome},
      {"deepseek",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get\n```json\n{\"city\": "
       "\"Rome\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_all\n"
       "```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       kRome + "|call get_all({})"},
      {"deepseek",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get<｜tool▁sep｜>{\"city\": "
       "\"Rome\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       kRome},
  };
  return all;
}

TEST(CallFinder, ReadsEveryFormWithEveryTemplate) {
  for (const CallForm& form : call_forms()) {
    EXPECT_TRUE(std::any_of(form_cases().begin(), form_cases().end(), [&](const FormCase& c) {
      return c.form == form.name;
    })) << form.name;
  }
  for (const FormCase& c : form_cases()) {
    for (const ToolFormat format : {ToolFormat::hermes, ToolFormat::generic, ToolFormat::llama3,
                                    ToolFormat::mistral, ToolFormat::coder}) {
      SCOPED_TRACE(format_name(format));
      const AnswerSyntax syntax = weather_syntax(format);
      const std::string parsed_text = parsed(syntax, c.text, 0);
      // a template's own calls keep the spelling of their arguments
      std::string plain = parsed_text;
      for (const char* spelled : {"{\"city\": \"Rome\"}"}) {
        if (const size_t at = plain.find(spelled); at != std::string::npos) {
          plain.replace(at, std::string(spelled).size(), "{\"city\":\"Rome\"}");
        }
      }
      EXPECT_EQ(plain, c.expected) << c.text;
      expect_parsed(syntax, {format, c.text, parsed_text});
    }
  }
}

TEST(CallFinder, ReadsTheSpellingsThatModelsUse) {
  expect_all(
      weather_syntax(),
      {
          {"{\"function\": {\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}}", kRome},
          {"{\"type\": \"function\", \"id\": \"a\", \"function\": {\"name\": \"get\", "
           "\"arguments\": \"{\\\"city\\\": \\\"Rome\\\"}\"}}",
           kRome},
          {"{\"tool_calls\": [{\"function\": {\"name\": \"get\", \"arguments\": {\"city\": "
           "\"Rome\"}}}, {\"name\": \"get_all\", \"arguments\": {}}]}",
           kRome + "|call get_all({})"},
          {"{\"name\": \"get\", \"parameters\": {\"city\": \"Rome\"}}", kRome},
          {"{\"tool_name\": \"get\", \"parameters\": {\"city\": \"Rome\"}}", kRome},
          {"{\"arguments\": {\"city\": \"Rome\"}, \"name\": \"get\"}", kRome},
          {"{\"name\": \"get_all\"}", "|call get_all({})"},
          // line breaks in strings are not JSON, but what is meant is clear
          {"```json\n{\"name\": \"write\", \"arguments\": {\"path\": \"a\", \"content\": "
           "\"x\n\ty\"}}\n```",
           "|call write({\"path\":\"a\",\"content\":\"x\\n\\ty\"})"},
          // as the template of Qwen2.5 Coder shows it
          {"{{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}}", kRome},
          {"{{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}}}", kRome},
          {"```json\n{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}}\n```", kRome},
          {"<tool_call>\n{{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}}\n</tool_call>",
           kRome},
          {"[{{\"name\": \"get_all\"}}, {{\"name\": \"get\", \"arguments\": {\"city\": "
           "\"Rome\"}}}]",
           "|call get_all({})" + kRome},
          // a fence that is not closed
          {"```json\n{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}", kRome},
          {"[get(city='It\\'s \"R\"', where={\"lat\": -1.5}, tags=['a', \"b\"])]",
           "|call get({\"city\":\"It's "
           "\\\"R\\\"\",\"where\":{\"lat\":-1.5},\"tags\":[\"a\",\"b\"]})"},
          {"[get(city=\"Rome\", where=None,)]",
           "|call get({\"city\":\"Rome\",\"where\":null})"},
          {"```xml\n<tool_call>\n{\"name\": \"get\", \"arguments\": {\"city\": "
           "\"Rome\"}}\n</tool_call>\n```",
           "|call get({\"city\": \"Rome\"})"},
      });
}

TEST(CallFinder, ReadsSeveralCallsAndTheTextBeforeThem) {
  const std::string call = "{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}";
  expect_all(weather_syntax(),
             {
                 {"I look.\n\n```json\n" + call + "\n```", "|I look." + kRome},
                 {"I look:\n" + call + "\n", "|I look:" + kRome},
                 {call + "\n" + call, kRome + kRome},
                 {call + ", " + call, kRome + kRome},
                 {"```json\n" + call + "\n" + call + "\n```", kRome + kRome},
                 {"```json\n" + call + "\n```\n\n```json\n" + call + "\n```", kRome + kRome},
                 {call + "\n```json\n" + call + "\n```", kRome + kRome},
                 // what fits is a call, although what came before was none
                 {"{\"name\": \"get\", \"arguments\": {\"city\": 1}}\n" + call,
                  "|{\"name\": \"get\", \"arguments\": {\"city\": 1}}" + kRome},
                 {"```python\nprint(1)\n```\nNow:\n```json\n" + call + "\n```",
                  "|```python\nprint(1)\n```\nNow:" + kRome},
                 {"First <tool_call>\n" + call + "\n</tool_call>\n```json\n" + call + "\n```",
                  "|First|call get({\"city\": \"Rome\"})" + kRome},
                 {"```json\n" + call + "\n```\n<tool_call>\n" + call + "\n</tool_call>",
                  kRome + "|call get({\"city\": \"Rome\"})"},
             });
}

TEST(CallFinder, LeavesTextAlone) {
  const std::string call = "{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}";
  std::vector<std::array<std::string, 2>> cases;
  for (const std::string& text : std::vector<std::string>{
           "Hello there", "trailing \n", "a\n\nb  \n", "```json\n{\"a\": 1}\n```",
           "```json\n" + call + "\n```\nThis asks for the weather.",
           call + " asks for the weather.", "Write " + call, "`" + call + "`",
           "```json\n" + call + "\n```\n```", "```json\n" + call + "\n``` or so",
           // no such function, or arguments that do not fit
           "{\"name\": \"got\", \"arguments\": {\"city\": \"Rome\"}}",
           "{\"name\": \"get\", \"arguments\": {}}",
           "{\"name\": \"get\", \"arguments\": {\"city\": 1}}",
           "{\"name\": \"get\", \"arguments\": {\"city\": \"R\", \"days\": 1.5}}",
           "{\"name\": \"get\", \"arguments\": {\"city\": \"R\", \"kind\": \"snow\"}}",
           "{\"name\": \"get\", \"arguments\": {\"city\": \"R\", \"where\": {\"lat\": 1, \"x\": 2}}}",
           "{\"name\": \"get\", \"arguments\": {\"city\": \"R\", \"tags\": [1]}}",
           "{\"name\": \"get\", \"arguments\": [1]}", "{\"name\": \"get\", \"arguments\": \"Rome\"}",
           "[{\"name\": \"get\", \"arguments\": {\"city\": \"R\"}}, 1]",
           // other members, so that it is something else
           "{\"name\": \"get\", \"age\": 36}", "{\"name\": \"Ada\", \"arguments\": {}}",
           "{\"name\": \"get\", \"arguments\": {\"city\": \"R\"}, \"result\": 1}",
           // what breaks off
           "{\"name\": \"get\", \"arguments\": {\"city\": \"Ro",
           "```json\n{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}", "```json", "``",
           "[get(city=\"Rome\"", "[get(\"Rome\")]", "[got(city=\"Rome\")]", "[1, 2]", "[x]",
           "<function=get>{\"city\": 1}</function>", "<function=got>{}</function>", "<tool_ca",
           "[TOOL_CALLS]other[ARGS]{}", "<|tool_call|>[1]", "<tools>none</tools>", "{}", "[]",
           "{\"tool_calls\": []}", "{{\"name\": \"get_all\"} ", "{{{\"name\": \"get_all\"}}}",
           "{{\"name\": \"get_all\"}"}) {
    cases.push_back({text, "|" + text});
  }
  expect_all(weather_syntax(), cases);
}

// Text that may be a call comes as soon as it can't be one.
TEST(CallFinder, HoldsBackNoLongerThanNeeded) {
  const std::array<std::string, 2> cases[] = {
      {"Let me see", ""},
      {"```python", "\nimport os"},
      {"```json\n{\"na", "mes\""},
      {"{\"name\": \"Ad", "a\""},
      {"[1", ""},
      {"[get_any", ""},
      {"<b>", ""},
      {"```json\n{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}\n```\n", "T"}};
  for (const auto& [held, more] : cases) {
    AnswerParser parser(weather_syntax());
    std::string shown;
    for (const std::string* part : {&held, &more}) {
      for (const char c : *part) {
        for (const Piece& piece : parser.push(std::string(1, c))) shown += piece.text;
      }
      if (part == &held && !more.empty()) {
        EXPECT_EQ(shown, "") << held;
      }
    }
    EXPECT_EQ(shown, held + more);
  }
}

TEST(CallFinder, EndsTheAnswerWhereAModelInventsResults) {
  const std::string call = "{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}";
  const std::string tagged = "<tool_call>\n" + call + "\n</tool_call>\n";
  const std::string result = "<tool_response>\n{\"sunny\": true}";
  const auto expect_end = [](ToolFormat format, const std::string& text,
                             const std::string& expected, bool ends) {
    const AnswerSyntax syntax = weather_syntax(format);
    expect_parsed(syntax, {format, text, expected});
    AnswerParser parser(syntax);
    (void)parser.push(text);
    EXPECT_EQ(parser.ended(), ends) << text;
  };
  expect_end(ToolFormat::hermes, tagged + result, "|call get({\"city\": \"Rome\"})", true);
  expect_end(ToolFormat::hermes, call + "\n" + result, kRome, true);
  expect_end(ToolFormat::hermes, "See " + result, "|See " + result, false);
  // where the template knows no tools, all that follows a call ends the answer
  expect_end(ToolFormat::generic, "```json\n" + call + "\n```\nIt is sunny.", kRome, true);
  expect_end(ToolFormat::generic, call + "\n" + call + "\nIt", kRome + kRome, true);
  expect_end(ToolFormat::generic, call + "\n```json\n{\"a\": 1}", kRome, true);
  expect_end(ToolFormat::generic, "It is sunny.", "|It is sunny.", false);
}

TEST(CallFinder, EndsTheAnswerWhereAModelWritesTheSameCallAgainAndAgain) {
  const std::string call = "{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}\n";
  const std::string other = "{\"name\": \"get_all\", \"arguments\": {}}\n";
  const std::string fenced = "```json\n" + call + "```\n";
  const auto expect_end = [](const std::string& text, const std::string& expected, bool ends) {
    const AnswerSyntax syntax = weather_syntax();
    expect_parsed(syntax, {syntax.tools, text, expected});
    AnswerParser parser(syntax);
    (void)parser.push(text);
    EXPECT_EQ(parser.ended(), ends) << text;
  };
  expect_end(call + call, kRome + kRome, false);
  expect_end(call + call + call, kRome, true);
  expect_end(call + other + call + other + call, kRome + "|call get_all({})", true);
  expect_end(fenced + fenced + fenced + "and so on", kRome, true);
}

TEST(CallFinder, WholeCallsCountBeforeOneThatBreaksOff) {
  const std::string call = "{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}\n";
  const std::string half = "{\"name\": \"get\", \"arguments\": {\"ci";
  expect_all(weather_syntax(), {{call + half, kRome},
                                {"Look:\n```json\n" + call + half, "|Look:" + kRome},
                                {"```json\n" + call + "```\n```json\n" + half, kRome}});
}

TEST(CallFinder, NothingFollowsTheOneCall) {
  const std::string call = "{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}";
  AnswerSyntax syntax = weather_syntax();
  syntax.one_call = true;
  expect_all(syntax, {{call, kRome},
                      {call + "\n" + call + "\n", kRome},
                      {"[" + call + ", {\"name\": \"get_all\"}]", kRome},
                      {"```json\n" + call + "\n```\n<tool_call>" + call + "</tool_call>", kRome},
                      {call + " is it", "|" + call + " is it"}});
}

// --tool-calls strict: only the template's own form is one.
TEST(CallFinder, IsOffUnlessItIsAskedFor) {
  AnswerSyntax syntax = weather_syntax();
  syntax.any_form = false;
  for (const FormCase& c : form_cases()) {
    if (c.form == "tool_call") continue;
    expect_parsed(syntax, {syntax.tools, c.text, "|" + c.text});
  }
}

// The cost of a hostile answer must not grow faster than its length.
TEST(CallFinder, TakesWhateverAModelWrites) {
  const auto begin = std::chrono::steady_clock::now();
  for (const std::string part :
       {"{", "[", "```json\n", "```", "\n{\"name\": \"get\", \"arguments\": {\"city\":", "\"", "\\",
        "{\"name\": \"get_all\"}", "[get(", "get(", "[get(city=[", "<function=get>", "<tool_call>",
        "<｜tool▁calls▁begin｜>", "[TOOL_CALLS]", "[ARGS]", "\n{\"function\": ", "[{", " \n", "x\n{"}) {
    std::string text;
    for (int i = 0; i < 4000; ++i) text += part;
    AnswerParser parser(weather_syntax());
    for (size_t at = 0; at < text.size(); at += 7) (void)parser.push(text.substr(at, 7));
    (void)parser.finish();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

}  // namespace
}  // namespace snapkv::chat
