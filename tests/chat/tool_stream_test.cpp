// SPDX-License-Identifier: MIT
// Tool calls are separated from text in every format, for every cut of the text, also after
// reasoning.
#include <gtest/gtest.h>

#include "chat/answer_parser.h"
#include "tests/chat/parsed_answer.h"

namespace snapkv::chat {
namespace {

const std::map<std::string, Json>& functions() {
  static const std::map<std::string, Json> all = {
      {"get", Json::parse(R"({"type": "object", "properties": {"city": {"type": "string"},
        "days": {"type": "integer"}, "dry": {"type": "boolean"}, "note": {"type": ["string", "null"]},
        "where": {"$ref": "#/$defs/place"}, "any": {}},
        "$defs": {"place": {"anyOf": [{"type": "object"}, {"type": "array"}]}}})")},
      {"set", Json::object()}};
  return all;
}

TEST(ToolStream, ReadsCallsHoweverTheyAreCut) {
  const Case cases[] = {
      // Hermes and Qwen
      {ToolFormat::hermes, "Hello there", "|Hello there"},
      {ToolFormat::hermes, "", ""},
      {ToolFormat::hermes,
       "<tool_call>\n{\"name\": \"get\", \"arguments\": {\"a\": [1, \"}\"]}}\n</tool_call>",
       "|call get({\"a\": [1, \"}\"]})"},
      {ToolFormat::hermes,
       "I look.\n\n<tool_call>{\"name\":\"get\",\"arguments\":{}}</tool_call>\n"
       "<tool_call>{\"arguments\": {\"b\": null}, \"name\": \"set\"}</tool_call>",
       "|I look.|call get({})|call set({\"b\": null})"},
      {ToolFormat::hermes, "<tool_call>{\"name\": \"get\"}</tool_call> done",
       "|call get({})| done"},
      {ToolFormat::hermes, "<tool_call>{\"name\": \"get\"}</tool_call>\n", "|call get({})"},
      {ToolFormat::hermes, "<tool_call>no JSON</tool_call>", "|<tool_call>no JSON</tool_call>"},
      {ToolFormat::hermes, "a <tool b", "|a <tool b"},
      {ToolFormat::hermes, "trailing \n", "|trailing \n"},
      {ToolFormat::hermes, "<tool_call>{\"name\": \"get\", \"arguments\": {\"a\": 1",
       "|call get({\"a\": 1)"},
      // Invalid JSON ends a call, which keeps the arguments before it.
      {ToolFormat::hermes,
       "<tool_call>{\"name\": \"get\", \"arguments\": {\"a\": [1}}</tool_call> x",
       "|call get({\"a\": [1)|}}</tool_call> x"},
      {ToolFormat::hermes,
       "<tool_call>{\"name\": \"get\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call>",
       "|call get({\"a\": 1})"},
      // Llama 3
      {ToolFormat::llama3, "{\"name\": \"get\", \"parameters\": {\"city\": \"Z\\\"x\"}}",
       "|call get({\"city\": \"Z\\\"x\"})"},
      {ToolFormat::llama3, "\n{\"type\": \"function\", \"name\": \"get\", \"parameters\": {}}",
       "|call get({})"},
      {ToolFormat::llama3, "<|python_tag|>{\"name\": \"get\", \"parameters\": {\"a\": 1}}",
       "|call get({\"a\": 1})"},
      {ToolFormat::llama3,
       "{\"name\": \"get\", \"parameters\": {}}; {\"name\": \"set\", \"parameters\": {}}",
       "|call get({})|call set({})"},
      {ToolFormat::llama3, "{\"name\": \"Ada\", \"age\": 36}", "|{\"name\": \"Ada\", \"age\": 36}"},
      {ToolFormat::llama3, "{\"answer\": 42}", "|{\"answer\": 42}"},
      {ToolFormat::llama3, "It is {\"name\": \"get\"}", "|It is {\"name\": \"get\"}"},
      // Mistral
      {ToolFormat::mistral, "[TOOL_CALLS][{\"name\": \"get\", \"arguments\": {\"a\": 1}}]",
       "|call get({\"a\": 1})"},
      {ToolFormat::mistral,
       "[{\"name\": \"get\", \"arguments\": {}}, {\"name\": \"set\", \"arguments\": {}, \"id\": "
       "\"123456789\"}]",
       "|call get({})|call set({})"},
      {ToolFormat::mistral, "[TOOL_CALLS]get[ARGS]{\"a\": 1}", "|call get({\"a\": 1})"},
      {ToolFormat::mistral, "Fine. [TOOL_CALLS]get{\"a\": 1}[TOOL_CALLS]set[ARGS]{}",
       "|Fine.|call get({\"a\": 1})|call set({})"},
      {ToolFormat::mistral, "[1, 2]", "|[1, 2]"},
      {ToolFormat::mistral, "[TOOL", "|[TOOL"},
      // Qwen3-Coder
      {ToolFormat::coder, "Hello there", "|Hello there"},
      {ToolFormat::coder,
       "<tool_call>\n<function=get>\n<parameter=city>\nSan \"José\"\n</parameter>\n"
       "<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>",
       "|call get({\"city\": \"San \\\"José\\\"\", \"days\": 3})"},
      {ToolFormat::coder,
       "I look.\n\n<tool_call>\n<function=set>\n</function>\n</tool_call>\n<tool_call>\n"
       "<function=get>\n<parameter=where>\n{\"a\": [1]}\n</parameter>\n</function>\n</tool_call> "
       "ok",
       "|I look.|call set({})|call get({\"where\": {\"a\": [1]}})| ok"},
      // Parameters of type string stay strings; others are read as JSON.
      {ToolFormat::coder,
       "<tool_call><function=get><parameter=city>12</parameter><parameter=dry>True</parameter>"
       "<parameter=note>\nnull\n</parameter><parameter=any>\n[1, "
       "2]\n</parameter></function></tool_call>",
       "|call get({\"city\": \"12\", \"dry\": true, \"note\": null, \"any\": [1, 2]})"},
      {ToolFormat::coder,
       "<tool_call>\n<function=get>\n<parameter=note>\n12\n</parameter>\n<parameter=days>\nmany\n"
       "</parameter>\n<parameter=dry>\n 1 \n</parameter>\n<parameter=any>\n\"x\"\n</parameter>\n"
       "<parameter=unknown>\ntrue\n</parameter>\n</function>\n</tool_call>",
       "|call get({\"note\": \"12\", \"days\": \"many\", \"dry\": \" 1 \", \"any\": \"\\\"x\\\"\", "
       "\"unknown\": true})"},
      // One line break at each end of a value belongs to the format, all others to the value.
      {ToolFormat::coder,
       "<tool_call>\n<function=get>\n<parameter=city>\n\n  a <b>\n</param\n\tc\\\n\n</parameter>\n"
       "<parameter=note>\n</parameter>\n<parameter=city>\n\n</parameter>\n</function>\n</"
       "tool_call>",
       "|call get({\"city\": \"\\n  a <b>\\n</param\\n\\tc\\\\\\n\", \"note\": \"\", \"city\": "
       "\"\"})"},
      // Models forget <tool_call>; without it, only names of tools make a call.
      {ToolFormat::coder, "So:\n<function=set>\n</function>\n</tool_call>", "|So:|call set({})"},
      {ToolFormat::coder, "a <function=map>\n</function> b", "|a <function=map>\n</function> b"},
      {ToolFormat::coder, "<function=<function=set></function>", "|<function=|call set({})"},
      {ToolFormat::coder, "<tool_call>other</tool_call>", "|<tool_call>other</tool_call>"},
      {ToolFormat::coder, "<tool_call><tool_call><function=set></function></tool_call>",
       "|<tool_call>|call set({})"},
      {ToolFormat::coder, "a <tool b <func", "|a <tool b <func"},
      // A call that breaks off keeps the arguments before that.
      {ToolFormat::coder, "<tool_call>\n<function=get>\n<parameter=city>\nRom</par",
       "|call get({\"city\": \"Rom</par)"},
      {ToolFormat::coder, "<tool_call>\n<function=get>\n<parameter=days>\n3", "|call get("},
      {ToolFormat::coder,
       "<tool_call>\n<function=get>\n<parameter=days>\n3\n</parameter>\nwhat?</tool_call>",
       "|call get({\"days\": 3})|what?</tool_call>"},
      // Some models write the arguments as one object.
      {ToolFormat::coder, "<function=get>{\"city\": \"a}\"}</function> x",
       "|call get({\"city\": \"a}\"})|x"},
      {ToolFormat::coder, "<function=get>{\"city\": \"a", "|call get({\"city\": \"a)"},
      {ToolFormat::coder, "<function=get>{\"city\" x}</function>",
       "|call get({\"city\" )|x}</function>"},
      // Without tools.
      {ToolFormat::none, "<tool_call>{}</tool_call>", "|<tool_call>{}</tool_call>"},
  };
  for (const Case& c : cases) {
    AnswerSyntax syntax;
    syntax.tools = c.format;
    syntax.functions = functions();
    expect_parsed(syntax, c);
  }
}

TEST(AnswerParser, TellsReasoningFromTheRest) {
  AnswerSyntax syntax;
  syntax.has_reasoning = true;
  syntax.tools = ToolFormat::hermes;
  syntax.functions = functions();
  expect_parsed(
      syntax, {ToolFormat::hermes, "<think>\nHm, {so}.\n</think>\n\nYes", "|think Hm, {so}.|Yes"});
  expect_parsed(syntax, {ToolFormat::hermes,
                         "<think>a</think><tool_call>{\"name\": \"get\", \"arguments\": {}}"
                         "</tool_call>",
                         "|think a|call get({})"});
  expect_parsed(syntax, {ToolFormat::hermes, "<think></think>x", "|x"});
  syntax.prompt_end = "<|im_start|>assistant\n<think>\n";
  expect_parsed(syntax,
                {ToolFormat::hermes, "deep\n\nthought</think>\n42", "|think deep\n\nthought|42"});
  syntax.has_reasoning = false;
  expect_parsed(syntax, {ToolFormat::hermes, "<think>a</think>b", "|<think>a</think>b"});
}

// Reasoning comes only first: its tags in an answer or a call are text.
TEST(AnswerParser, LeavesTagsOfReasoningInAnswersAlone) {
  AnswerSyntax syntax;
  syntax.has_reasoning = true;
  syntax.tools = ToolFormat::hermes;
  syntax.functions = functions();
  for (const char* text :
       {"Use the <thinking> tag like this", "{\"tag\": \"<think>\"}", "a [THINK] b </think> c"}) {
    expect_parsed(syntax, {ToolFormat::hermes, text, std::string("|") + text});
  }
  expect_parsed(syntax, {ToolFormat::hermes,
                         "<think>a</think>\n\n<tool_call>{\"name\": \"get\", \"arguments\": "
                         "{\"city\": \"<think>\"}}</tool_call>",
                         "|think a|call get({\"city\": \"<think>\"})"});
}

// For parallel_tool_calls: false.
TEST(AnswerParser, NothingFollowsTheOneCall) {
  AnswerSyntax syntax;
  syntax.one_call = true;
  syntax.functions = functions();
  const Case cases[] = {
      {ToolFormat::hermes,
       "So: <tool_call>{\"name\": \"get\", \"arguments\": {}}</tool_call>\n<tool_call>{\"name\": "
       "\"set\"}</tool_call> x",
       "|So:|call get({})"},
      // A call that breaks off does not count.
      {ToolFormat::hermes,
       "<tool_call>{\"name\": \"get\" no</tool_call><tool_call>{\"name\": \"set\"}</tool_call> x",
       "|call get(|no</tool_call>|call set({})"},
      {ToolFormat::llama3,
       "{\"name\": \"get\", \"parameters\": {\"a\": 1}}; {\"name\": \"set\", \"parameters\": {}}",
       "|call get({\"a\": 1})"},
      {ToolFormat::mistral, "[TOOL_CALLS]get[ARGS]{\"a\": 1}[TOOL_CALLS]set[ARGS]{}",
       "|call get({\"a\": 1})"},
      {ToolFormat::coder,
       "<tool_call>\n<function=set>\n</function>\n</tool_call>\n<tool_call>\n<function=get>\n"
       "</function>\n</tool_call>",
       "|call set({})"},
      {ToolFormat::hermes, "no call", "|no call"}};
  for (const Case& c : cases) {
    syntax.tools = c.format;
    expect_parsed(syntax, c);
    AnswerParser parser(syntax);
    (void)parser.push(c.text);
    EXPECT_EQ(parser.ended(), c.text != "no call") << c.text;
  }
}

// The cost of a hostile answer must not grow faster than its length.
TEST(ToolStream, TakesWhateverAModelWrites) {
  AnswerSyntax syntax;
  for (const ToolFormat format :
       {ToolFormat::hermes, ToolFormat::llama3, ToolFormat::mistral, ToolFormat::coder}) {
    syntax.tools = format;
    syntax.functions = functions();
    for (const std::string part :
         {"{", "[", "<tool_call>", "[TOOL_CALLS]", "{\"name\": \"get\", \"arguments\": {", "\"",
          "\\", "</tool_call>", " \n", "]", "<function=", "<function=get>", "<parameter=city>",
          "</parameter>", "</function>", "<tool_call><function=get><parameter=city>"}) {
      std::string text;
      for (int i = 0; i < 2000; ++i) text += part;
      AnswerParser parser(syntax);
      for (size_t at = 0; at < text.size(); at += 7) (void)parser.push(text.substr(at, 7));
      (void)parser.finish();
    }
  }
}

}  // namespace
}  // namespace snapkv::chat
