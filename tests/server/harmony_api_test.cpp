// SPDX-License-Identifier: MIT
// gpt-oss's answers in every API, plain and streamed: reasoning, calls and text by their channels.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "server/api/api_error.h"
#include "server/api/exchange.h"
#include "snapkv/grammar.h"
#include "tests/server/scripted_engine.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace {

using namespace server;

constexpr const char* kHarmonyTemplate =
    "{% for t in tools %}{{ '#' + t.function.name }}{% endfor %}{% for m in messages %}"
    "{% if m.tool_calls %}{{ '<|start|>assistant to=functions.' + m.tool_calls[0].function.name"
    " + '<|channel|>commentary json<|message|>{}<|call|>' }}"
    "{% else %}{{ '<|start|>' + m.role + '<|message|>' + m.content + '<|end|>' }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}";

const std::string kHarmonyMessages = R"("messages": [{"role": "user", "content": "x"}])";
const std::string kHarmonyParameters =
    R"({"type": "object", "properties": {"city": {"enum": ["Rome"]}}, "required": ["city"]})";
const std::string kHarmonyFunction =
    R"({"type": "function", "function": {"name": "get", "parameters": )" + kHarmonyParameters +
    "}}";
const std::string kHarmonyStop = R"({"type": "function", "function": {"name": "stop"}})";
const std::string kHarmonyTools = R"("tools": [)" + kHarmonyFunction + "]";
const std::string kHarmonyCall =
    "<|channel|>analysis<|message|>Which city?<|end|><|start|>assistant<|channel|>commentary"
    "<|message|>I look.<|end|><|start|>assistant<|channel|>commentary to=functions.get "
    "<|constrain|>json<|message|>{\"city\": \"Rome\"}";

class HarmonyApi : public testing::Test {
 protected:
  HarmonyApi() {
    options_.chat_template = options_.tool_template =
        ChatTemplate::parse(kHarmonyTemplate, "harmony");
  }
  Request request(const std::string& fields) {
    return read_chat_completion(parse_body("{" + kHarmonyMessages + ", " + fields + "}"),
                                ApiContext{engine_, options_})
        .request;
  }
  std::string answered(ReadExchange read, const std::string& body, const std::string& text,
                       FinishReason reason = FinishReason::stop) {
    const auto answers = read(parse_body(body), ApiContext{engine_, options_}).answers;
    RequestUpdates updates;
    push_answer(updates, {text}, 5, reason);
    std::string events;
    while (!answers->complete()) {
      events += answers->take(*updates.next(std::chrono::milliseconds(0)));
    }
    return answers->options().stream ? events : to_text(answers->plain());
  }
  std::string chat(const std::string& fields, const std::string& text,
                   FinishReason reason = FinishReason::stop) {
    return answered(read_chat_completion, "{" + kHarmonyMessages + fields + "}", text, reason);
  }
  /// Whether the grammar allows the text as a whole.
  static bool allows(const std::shared_ptr<const Grammar>& grammar, const std::string& text) {
    static const auto vocabulary =
        std::make_shared<const GrammarVocabulary>(load_model("needle")->tokenizer());
    GrammarMatcher matcher(*grammar, vocabulary);
    try {
      matcher.accept_text(text);
    } catch (const Error&) {
      return false;
    }
    return matcher.is_complete();
  }

  ScriptedEngine engine_;
  ApiOptions options_ = api_options();
};

void expect_harmony(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
  EXPECT_EQ(text.find("<|"), std::string::npos) << text;
}

TEST_F(HarmonyApi, HasReasoningTextAndCallsInEveryApi) {
  const std::string chat_body = "{" + kHarmonyMessages + ", " + kHarmonyTools;
  expect_harmony(answered(read_chat_completion, chat_body + "}", kHarmonyCall),
                 {R"("finish_reason":"tool_calls")", R"("content":"I look.")",
                  R"("reasoning_content":"Which city?")", R"("name":"get")",
                  R"("arguments":"{\"city\": \"Rome\"}")"});
  expect_harmony(answered(read_chat_completion, chat_body + R"(, "stream": true})", kHarmonyCall),
                 {R"("finish_reason":"tool_calls")", R"("content":" look.")",
                  R"("reasoning_content":"Which)", R"("name":"get")", R"("arguments":"{\"c)"});
  const std::string response =
      R"({"input": "x", "tools": [{"type": "function", "name": "get", "parameters": )" +
      kHarmonyParameters + "}]";
  expect_harmony(answered(read_response, response + "}", kHarmonyCall),
                 {R"("type":"reasoning")", R"("text":"I look.")", R"("type":"function_call")",
                  R"("arguments":"{\"city\": \"Rome\"}")"});
  expect_harmony(answered(read_response, response + R"(, "stream": true})", kHarmonyCall),
                 {"response.function_call_arguments.done", R"("text":"I look.")"});
  const std::string messages = R"({"max_tokens": 9, )" + kHarmonyMessages +
                               R"(, "tools": [{"name": "get", "input_schema": )" +
                               kHarmonyParameters + "}]";
  expect_harmony(answered(read_messages, messages + "}", kHarmonyCall),
                 {R"("stop_reason":"tool_use")", R"("thinking":"Which city?")",
                  R"("text":"I look.")", R"("input":{"city":"Rome"})"});
  expect_harmony(answered(read_messages, messages + R"(, "stream": true})", kHarmonyCall),
                 {R"("stop_reason":"tool_use")", "thinking_delta", "input_json_delta"});
  expect_harmony(
      answered(read_ollama_chat, R"({"model": "m", "stream": false, )" + chat_body.substr(1) + "}",
               kHarmonyCall),
      {R"("thinking":"Which city?")", R"("name":"get","arguments":{"city":"Rome"})"});
}

TEST_F(HarmonyApi, HasReasoningAndTextWithoutTools) {
  const std::string text =
      "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>Hi.";
  expect_harmony(chat("", text), {R"("content":"Hi.")", R"("reasoning_content":"Hm")",
                                  R"("finish_reason":"stop")"});
  // nothing turns the channel off
  expect_harmony(chat(R"(, "reasoning_effort": "none")", text), {R"("content":"Hi.")"});
  expect_harmony(chat(R"(, "reasoning_format": "none")", text), {R"("content":"Hm\n\nHi.")"});
  EXPECT_EQ(chat("", kHarmonyCall).find("tool_calls"), std::string::npos);
}

TEST_F(HarmonyApi, ACallThatBreaksOffIsNotMade) {
  const std::string cut = kHarmonyCall.substr(0, kHarmonyCall.size() - 3);
  expect_harmony(chat(", " + kHarmonyTools, cut, FinishReason::length),
                 {R"("finish_reason":"length")", R"("arguments":"{\"city\": \"Rom")"});
  expect_harmony(chat(", " + kHarmonyTools, cut), {R"("finish_reason":"stop")"});
}

TEST_F(HarmonyApi, AForcedCallBeginsInThePrompt) {
  const std::string begin =
      "<|start|>user<|message|>x<|end|><|start|>assistant<|channel|>commentary";
  const Request one = request(kHarmonyTools + R"(, "tool_choice": "required")");
  EXPECT_EQ(one.prompt.chat.text,
            "#get" + begin + " to=functions.get <|constrain|>json<|message|>");
  EXPECT_TRUE(allows(one.grammar, R"({"city": "Rome"})")) << one.grammar->source();
  EXPECT_FALSE(allows(one.grammar, R"({"city": "Oslo"})"));
  expect_harmony(
      chat(", " + kHarmonyTools + R"(, "tool_choice": "required")", R"({"city": "Rome"})"),
      {R"("finish_reason":"tool_calls")", R"("name":"get")",
       R"("arguments":"{\"city\": \"Rome\"}")"});
  const std::string two = R"("tools": [)" + kHarmonyFunction + ", " + kHarmonyStop + "]";
  const Request any = request(two + R"(, "tool_choice": "required")");
  EXPECT_EQ(any.prompt.chat.text, "#get#stop" + begin + " to=functions.");
  EXPECT_TRUE(allows(any.grammar, R"(get json{"city": "Rome"})")) << any.grammar->source();
  EXPECT_TRUE(allows(any.grammar, "stop json{}"));
  EXPECT_FALSE(allows(any.grammar, "other json{}"));
  expect_harmony(chat(", " + two + R"(, "tool_choice": "required")", "stop json{}"),
                 {R"("finish_reason":"tool_calls")", R"("name":"stop")", R"("arguments":"{}")"});
  const Request chosen =
      request(two + R"(, "tool_choice": {"type": "function", "function": {"name": "stop"}})");
  EXPECT_TRUE(chosen.prompt.chat.text.ends_with("to=functions.stop <|constrain|>json<|message|>"));
}

TEST_F(HarmonyApi, AnAnswerWithAGrammarBeginsInThePrompt) {
  const std::string json = R"("response_format": {"type": "json_object"})";
  const std::string header = "assistant<|channel|>final<|message|>";
  EXPECT_TRUE(request(json).prompt.chat.text.ends_with(header));
  expect_harmony(chat(", " + json, R"({"a": 1})"), {R"("content":"{\"a\": 1}")"});
  const Request either = request(kHarmonyTools + ", " + json);
  EXPECT_TRUE(either.prompt.chat.text.ends_with(header));
  EXPECT_TRUE(allows(either.grammar, R"({"name": "get", "arguments": {"city": "Rome"}})"));
  expect_harmony(
      chat(", " + kHarmonyTools + ", " + json, R"({"name": "get", "arguments": {"city": "Rome"}})"),
      {R"("finish_reason":"tool_calls")", R"("name":"get")"});
}

// What a call's arguments may be is given by a grammar from its header on.
TEST_F(HarmonyApi, CallsThatHaveBegunHaveAGrammar) {
  const Request free = request(kHarmonyTools);
  EXPECT_EQ(free.grammar, nullptr);
  ASSERT_TRUE(free.call_grammar);
  const auto watch = free.make_watch();
  EXPECT_EQ(watch(" to=functions.").begun_call, std::optional<std::string>("to=functions."));
  EXPECT_EQ(watch("get <|constrain|>json<|message|>").begun_call,
            std::optional<std::string>("get<|message|>"));
  EXPECT_TRUE(allows(free.call_grammar, "to=functions.get"));
  EXPECT_FALSE(allows(free.call_grammar, "to=functions.other"));
  EXPECT_TRUE(allows(free.call_grammar, R"(get<|message|>{"city": "Rome"})"));
  EXPECT_FALSE(allows(free.call_grammar, R"(get<|message|>{"city": "Oslo"})"));
  const Request strict = request(kHarmonyTools + R"(, "tool_calls": "strict")");
  EXPECT_FALSE(strict.call_grammar);
  EXPECT_TRUE(strict.make_watch()(kHarmonyCall + "<|end|><|start|>functions.get<|message|>").ends);
}

// gpt-oss's own template, where the test data has it.
TEST_F(HarmonyApi, TheModelsTemplateTakesConversations) {
  const char* data = std::getenv("SNAPKV_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "SNAPKV_TEST_DATA is not set";
  std::ostringstream source;
  source << std::ifstream(std::string(data) + "/templates/openai-gpt-oss-120b.jinja").rdbuf();
  options_.chat_template = options_.tool_template = ChatTemplate::parse(source.str(), "gpt-oss");
  const Request request = read_chat_completion(parse_body(R"({"messages": [
    {"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Weather?"},
    {"role": "assistant", "content": "I look.", "reasoning_content": "Both.", "tool_calls": [
      {"id": "1", "type": "function", "function": {"name": "get", "arguments": "{\"city\": \"Rome\"}"}},
      {"id": "2", "type": "function", "function": {"name": "stop", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "2", "content": "ok"},
    {"role": "tool", "tool_call_id": "1", "content": "sunny"}],
    "reasoning_effort": "max", "tools": [)" + kHarmonyFunction +
                                                          ", " + kHarmonyStop + "]}"),
                                               ApiContext{engine_, options_})
                              .request;
  const std::string& text = request.prompt.chat.text;
  EXPECT_NE(text.find("Reasoning: high\n"), std::string::npos) << text;
  EXPECT_NE(text.find("# Instructions\n\nBe brief."), std::string::npos) << text;
  EXPECT_NE(text.find("type get = "), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with(
      "<|start|>user<|message|>Weather?<|end|>"
      "<|start|>assistant<|channel|>analysis<|message|>Both.\n\nI look.<|end|>"
      "<|start|>assistant to=functions.get<|channel|>commentary json<|message|>"
      "{\"city\": \"Rome\"}<|call|>"
      "<|start|>functions.get to=assistant<|channel|>commentary<|message|>\"sunny\"<|end|>"
      "<|start|>assistant to=functions.stop<|channel|>commentary json<|message|>{}<|call|>"
      "<|start|>functions.stop to=assistant<|channel|>commentary<|message|>\"ok\"<|end|>"
      "<|start|>assistant"))
      << text;
}

}  // namespace
}  // namespace snapkv::test
