// SPDX-License-Identifier: MIT
// Calls in another form than the template's become calls in every API, plain and streamed.
#include <gtest/gtest.h>

#include "server/api/exchange.h"
#include "tests/server/scripted_engine.h"

namespace snapkv::test {
namespace {

using namespace server;

class CallForms : public testing::Test {
 protected:
  ScriptedEngine engine_;
  ApiOptions options_ = api_options();

  Exchange exchange(ReadExchange read, const std::string& body) {
    return read(parse_body(body), ApiContext{engine_, options_});
  }
  /// What is sent for this text: the events of a stream, or the plain answer.
  std::string answered(ReadExchange read, const std::string& body,
                       const std::string& text) {
    const auto answers = exchange(read, body).answers;
    RequestUpdates updates;
    push_answer(updates, {text}, 1000, FinishReason::stop);
    std::string events;
    while (!answers->complete()) {
      events += answers->take(*updates.next(std::chrono::milliseconds(0)));
    }
    return answers->options().stream ? events : to_text(answers->plain());
  }
};

constexpr const char* kParameters =
    R"({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})";
const std::string kFenced =
    "I look.\n```json\n{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}\n```";

struct ApiCase {
  ReadExchange read;
  std::string body;  // without its last brace
  std::vector<std::string> plain, streamed;  // what the answers contain
};

std::vector<ApiCase> api_cases() {
  const std::string messages = R"("messages": [{"role": "user", "content": "x"}], )";
  const std::string parameters = kParameters;
  const std::string function =
      R"("tools": [{"type": "function", "function": {"name": "get", "parameters": )" + parameters +
      "}}]";
  return {
      {read_chat_completion,
       "{" + messages + function,
       {R"("finish_reason":"tool_calls")", R"("name":"get")", R"("content":"I look.")",
        R"("arguments":"{\"city\":\"Rome\"}")"},
       {R"("finish_reason":"tool_calls")", R"("name":"get")", R"({\"city\":\"Rome\"})"}},
      {read_response,
       R"({"input": "x", "tools": [{"type": "function", "name": "get", "parameters": )" +
           parameters + "}]",
       {R"("type":"function_call")", R"("name":"get")", R"("arguments":"{\"city\":\"Rome\"}")"},
       {"response.function_call_arguments.done", R"("name":"get")"}},
      {read_messages,
       R"({"max_tokens": 9, )" + messages + R"("tools": [{"name": "get", "input_schema": )" +
           parameters + "}]",
       {R"("stop_reason":"tool_use")", R"("input":{"city":"Rome"})"},
       {R"("stop_reason":"tool_use")", "input_json_delta"}},
      {read_ollama_chat,
       R"({"model": "m", "stream": false, )" + messages + function,
       {R"("tool_calls":[{)", R"("name":"get","arguments":{"city":"Rome"})"},
       {}},
  };
}

TEST_F(CallForms, AreCallsInEveryApi) {
  for (const ApiCase& api : api_cases()) {
    const std::string plain = answered(api.read, api.body + "}", kFenced);
    for (const std::string& part : api.plain) {
      EXPECT_NE(plain.find(part), std::string::npos) << part << " in " << plain;
    }
    EXPECT_EQ(plain.find("```"), std::string::npos) << plain;
    if (api.streamed.empty()) continue;
    const std::string events = answered(api.read, api.body + R"(, "stream": true})", kFenced);
    for (const std::string& part : api.streamed) {
      EXPECT_NE(events.find(part), std::string::npos) << part << " in " << events;
    }
    EXPECT_EQ(events.find("```"), std::string::npos) << events;
  }
}

TEST_F(CallForms, AreTextWhereOnlyTheTemplatesFormCounts) {
  for (const ApiCase& api : api_cases()) {
    const std::string strict = answered(api.read, api.body + R"(, "tool_calls": "strict"})", kFenced);
    EXPECT_NE(strict.find("```json"), std::string::npos) << strict;
    options_.any_call_form = false;
    EXPECT_EQ(answered(api.read, api.body + "}", kFenced).find("\"tool_use\""), std::string::npos);
    const std::string asked = answered(api.read, api.body + R"(, "tool_calls": "auto"})", kFenced);
    EXPECT_EQ(asked.find("```json"), std::string::npos) << asked;
    options_.any_call_form = true;
  }
  const ApiCase chat = api_cases()[0];
  EXPECT_THROW((void)exchange(chat.read, chat.body + R"(, "tool_calls": "maybe"})"), ApiError);
}

// What a call's arguments may be is given by a grammar from the call's beginning on.
TEST_F(CallForms, HaveAGrammarInEveryApi) {
  for (const ApiCase& api : api_cases()) {
    const Request request = exchange(api.read, api.body + "}").request;
    ASSERT_TRUE(request.call_grammar);
    EXPECT_EQ(request.grammar, nullptr);
    const auto watch = request.make_watch();
    EXPECT_FALSE(watch(kFenced.substr(0, kFenced.find('{'))).begun_call);
    const auto begun = watch("{\"name\": \"get\", \"arguments\": {").begun_call;
    EXPECT_EQ(begun, std::optional<std::string>("get: {"));
  }
  const ApiCase chat = api_cases()[0];
  for (const char* fields : {R"("tool_calls": "strict")", R"("tool_choice": "none")",
                             R"("tool_choice": "required")",
                             R"("response_format": {"type": "json_object"})"}) {
    EXPECT_FALSE(exchange(chat.read, chat.body + ", " + fields + "}").request.call_grammar) << fields;
  }
}

// Without tools, or with an answer whose form a grammar gives, JSON is an answer.
TEST_F(CallForms, AreTextWhereNoCallIsExpected) {
  const std::string json = R"({"name": "get", "arguments": {"city": "Rome"}})";
  const ApiCase chat = api_cases()[0];
  for (const char* fields : {R"(, "tool_choice": "none"})",
                             R"(, "response_format": {"type": "json_object"}})"}) {
    const std::string answer = answered(chat.read, chat.body + fields, json);
    EXPECT_NE(answer.find(R"("finish_reason":"stop")"), std::string::npos) << answer;
  }
}

// A model that goes on after its calls with results of its own is stopped there.
TEST_F(CallForms, EndGenerationWhereResultsAreInvented) {
  const auto ends = [&](const std::string& text) {
    const ApiCase chat = api_cases()[0];
    const Request request = exchange(chat.read, chat.body + "}").request;
    return request.make_watch != nullptr && request.make_watch()(text).ends;
  };
  const std::string call = R"({"name": "get", "arguments": {"city": "Rome"}})";
  EXPECT_TRUE(ends("<tool_call>\n" + call + "\n</tool_call>\n<tool_response>"));
  EXPECT_TRUE(ends(call + "\n<tool_response>"));
  EXPECT_FALSE(ends(call + "\nis a call"));
  options_.tool_template = ChatTemplate::built_in("chatml");  // which writes no tools
  EXPECT_TRUE(ends(call + "\nIt is sunny."));
  EXPECT_FALSE(ends(call));
}

}  // namespace
}  // namespace snapkv::test
