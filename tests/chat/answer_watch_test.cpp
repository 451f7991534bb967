// SPDX-License-Identifier: MIT
// AnswerWatch says where the grammar of a call begins to hold, and only where a call has begun.
#include "chat/answer_watch.h"

#include <gtest/gtest.h>

#include "chat/json.h"

namespace snapkv::chat {
namespace {

AnswerSyntax watched_syntax(ToolFormat format = ToolFormat::hermes) {
  AnswerSyntax syntax;
  syntax.tools = format;
  syntax.any_form = true;
  syntax.functions = {{"get", Json::parse(R"({"type": "object"})")},
                      {"get_all", Json::parse(R"({"type": "object"})")}};
  return syntax;
}

/// All that has begun in the answer, which comes in these parts: "1 get: {" is the text that began
/// with the second part.
std::vector<std::string> begun(const AnswerSyntax& syntax, const std::vector<std::string>& parts) {
  AnswerWatch watch(syntax);
  std::vector<std::string> all;
  for (size_t i = 0; i < parts.size(); ++i) {
    watch.push(parts[i]);
    if (watch.begun_call()) all.push_back(std::to_string(i) + " " + *watch.begun_call());
  }
  return all;
}

using Begun = std::vector<std::string>;

TEST(AnswerWatch, FindsTheArgumentsOfCallsInJson) {
  const AnswerSyntax syntax = watched_syntax();
  const std::string name = R"({"name": "get", "arguments")";
  EXPECT_EQ(begun(syntax, {name, ":", " {\"a\": 1", "}}"}), (Begun{"1 get:"}));
  EXPECT_EQ(begun(syntax, {name, ": {\"a", "\": 1}}"}), (Begun{"1 get: {\"a"}));
  EXPECT_EQ(begun(syntax, {"I look.\n\n```json\n" + name, ":"}), (Begun{"1 get:"}));
  EXPECT_EQ(
      begun(syntax, {"```\n[\n  " + name, ":", "{}}, {\"name\": \"get_all\", \"input\":", "{}"}),
      (Begun{"1 get:", "2 get_all:"}));
  EXPECT_EQ(begun(syntax, {"{" + name, ": "}), (Begun{"1 get: "}));
  EXPECT_EQ(begun(syntax, {"<tools>\n" + name, ":"}), (Begun{"1 get:"}));
  EXPECT_EQ(begun(syntax, {"<tool_response>\n" + name, ":"}), (Begun{"1 get:"}));
  EXPECT_EQ(begun(syntax, {R"({"tool_calls": [{"function": )" + name, ":"}), (Begun{"1 get:"}));
  // the arguments stand after the name
  EXPECT_EQ(begun(syntax, {"[TOOL_CALLS]get", "[ARGS]", "{\"a\"", ": 1}"}), (Begun{"2 get{\"a\""}));
  EXPECT_EQ(begun(syntax, {"<function=get>", "{", "\"a\": 1}"}), (Begun{"1 get{"}));
}

TEST(AnswerWatch, FindsCallsOfTheTemplatesForm) {
  const std::string name = R"({"name": "get", "arguments")";
  EXPECT_EQ(begun(watched_syntax(), {"I look. <tool", "_call>", "\n" + name, ": {"}),
            (Begun{"1 <tool_call>", "3 get: {"}));
  EXPECT_EQ(begun(watched_syntax(), {"<tool_call>\n{"}), (Begun{"0 <tool_call>\n{"}));
  EXPECT_EQ(begun(watched_syntax(ToolFormat::llama3), {R"({"name": "get", "parameters")", ":"}),
            (Begun{"1 get:"}));
  EXPECT_EQ(begun(watched_syntax(ToolFormat::mistral), {"[TOOL_CALLS][" + name, ":", "{}}]"}),
            (Begun{"1 get:"}));
  EXPECT_EQ(begun(watched_syntax(ToolFormat::mistral), {"[TOOL_CALLS]get", "[ARGS]{", "}"}),
            (Begun{"1 get{"}));
  // parameters that are no JSON
  EXPECT_EQ(begun(watched_syntax(ToolFormat::coder),
                  {"<tool_call>", "\n<function=get>\n<parameter=a>", "1</parameter>"}),
            Begun{});
}

TEST(AnswerWatch, LeavesOtherTextAlone) {
  const std::string call = R"({"name": "get", "arguments": {"a": 1}})";
  AnswerSyntax syntax = watched_syntax();
  EXPECT_EQ(begun(syntax, {"Write " + call.substr(0, 27), call.substr(27)}), Begun{});
  EXPECT_EQ(begun(syntax, {R"({"name": "other", "arguments")", ": {"}), Begun{});
  EXPECT_EQ(begun(syntax, {R"({"name": "get", "size")", ": {", R"("arguments": {)"}), Begun{});
  EXPECT_EQ(begun(syntax, {R"({"arguments")", R"(: {"arguments": 1}, "name": "get"})"}), Begun{});
  EXPECT_EQ(begun(syntax, {"[get(", "a=1)]"}), Begun{});
  syntax.has_reasoning = true;
  syntax.prompt_end = "<think>\n";
  EXPECT_EQ(begun(syntax, {"Perhaps\n<tool_call>", "\n" + call, "</think>", "<tool_call>"}),
            (Begun{"3 <tool_call>"}));
}

TEST(AnswerWatch, SeesWhereCallsEndTheAnswer) {
  AnswerSyntax syntax = watched_syntax();
  syntax.one_call = true;
  AnswerWatch watch(syntax);
  watch.push(R"(<tool_call>{"name": "get", "arguments": {)");
  EXPECT_FALSE(watch.ended());
  watch.push("}}");
  EXPECT_TRUE(watch.ended());
}

}  // namespace
}  // namespace snapkv::chat
