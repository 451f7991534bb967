// SPDX-License-Identifier: MIT
// Request bodies: the request that the engine gets, and the messages for those that are refused.
#include <gtest/gtest.h>

#include <fstream>

#include "chat/document.h"
#include "server/api/fields.h"
#include "server/api/snapshot_names.h"
#include "tests/server/request_support.h"
#include "tests/support/test_models.h"

namespace snapkv::test {

using namespace chat;

namespace {

using namespace server;

TEST_F(Requests, HaveTheServersDefaults) {
  options_.sampler.top_k = 7;
  options_.session.kv.budget = 77;
  options_.timeout = 5;
  options_.sampler.seed = 3;
  const Request request = chat("");
  EXPECT_TRUE(request.id.starts_with("chatcmpl-"));
  EXPECT_EQ(request.n, 1);
  EXPECT_EQ(request.max_tokens, -1);
  EXPECT_EQ(request.top_logprobs, -1);
  EXPECT_EQ(request.sampler.top_k, 7);
  EXPECT_EQ(request.sampler.seed, 3);
  EXPECT_EQ(request.session.kv.budget, 77);
  EXPECT_EQ(request.timeout, 5);
  EXPECT_EQ(request.kv_report, KvReportLevel::summary);
  EXPECT_EQ(request.grammar, nullptr);
  EXPECT_EQ(request.prompt.chat.text, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(request.prompt.tokens, engine_.model().tokenize(request.prompt.chat));
}

TEST_F(Requests, FieldsReachTheEngine) {
  const Request request = chat(R"("n": 3, "stop": ["a", "b"], "seed": 42, "max_tokens": 5,
    "max_completion_tokens": 6, "temperature": 0, "top_p": 0.5, "top_k": 9, "min_p": 0.1,
    "repeat_penalty": 1.5, "presence_penalty": -1, "frequency_penalty": 2.0,
    "logit_bias": {"5": -100, "7": 1.5}, "logprobs": true, "top_logprobs": 4, "ignore_eos": true,
    "return_progress": true, "kv_report": "positions", "unknown_field": {"a": 1}, "user": "me")");
  EXPECT_EQ(request.n, 3);
  EXPECT_EQ(request.stops, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request.sampler.seed, 42);
  EXPECT_EQ(request.max_tokens, 6);
  EXPECT_EQ(request.sampler.temperature, 0);
  EXPECT_EQ(request.sampler.top_p, 0.5);
  EXPECT_EQ(request.sampler.top_k, 9);
  EXPECT_EQ(request.sampler.min_p, 0.1);
  EXPECT_EQ(request.sampler.repeat_penalty, 1.5);
  EXPECT_EQ(request.sampler.presence_penalty, -1);
  EXPECT_EQ(request.sampler.frequency_penalty, 2);
  ASSERT_EQ(request.sampler.logit_bias.size(), 2u);
  EXPECT_EQ(request.sampler.logit_bias[1].id, 7);
  EXPECT_EQ(request.sampler.logit_bias[1].bias, 1.5);
  EXPECT_EQ(request.top_logprobs, 4);
  EXPECT_TRUE(request.ignore_eos);
  EXPECT_TRUE(request.reports_progress);
  EXPECT_EQ(request.kv_report, KvReportLevel::positions);
}

TEST_F(Requests, NullIsAsGoodAsAbsent) {
  const Request request = chat(R"("n": null, "stop": null, "seed": null, "max_tokens": null,
    "temperature": null, "logit_bias": null, "logprobs": null, "kv": null, "tools": null,
    "response_format": null, "stream_options": null)");
  EXPECT_EQ(request.n, 1);
  EXPECT_TRUE(request.stops.empty());
}

TEST_F(Requests, OptionsOfAStreamAreForStreams) {
  const std::string with_options = R"({"prompt": "x", "stream_options": {"include_usage": true})";
  EXPECT_TRUE(error(read_completion, with_options + "}").starts_with("stream_options| "));
  EXPECT_EQ(error(read_completion, with_options + R"(, "stream": true})"), "accepted");
}

TEST_F(Requests, KvChoosesWhatIsKept) {
  Request request =
      chat(R"("kv": {"budget": 64, "window_size": 8, "kernel_size": 3, "pooling": "avg"})");
  EXPECT_EQ(request.session.kv.name, "snapkv");
  EXPECT_EQ(request.session.kv.budget, 64);
  EXPECT_EQ(request.session.kv.window_size, 8);
  EXPECT_EQ(policy_value(request.session.kv, "kernel_size"), PolicyValue(int64_t{3}));
  EXPECT_EQ(policy_value(request.session.kv, "pooling"), PolicyValue(std::string("avg")));
  request = chat(R"("kv": {"policy": "streaming-llm", "sinks": 2, "ratio": 0.5, "reuse": false})");
  EXPECT_EQ(request.session.kv.name, "streaming-llm");
  EXPECT_EQ(request.session.kv.ratio, 0.5);
  EXPECT_FALSE(request.reuses);
  request = chat(R"("kv": {"policy": "snapkv-max", "budget": "auto", "window_size": 8})");
  EXPECT_EQ(request.session.kv.budget, PolicyConfig{}.budget);
  EXPECT_EQ(policy_value(request.session.kv, "least_attention"), PolicyValue(0.05));
  EXPECT_EQ(request.session.kv.window_size, 8);
  request = chat(R"("kv": {"memory": "4M"})");
  EXPECT_EQ(request.session.kv_memory, size_t{4} << 20);
  options_.session.kv_memory = size_t{4} << 20;
  EXPECT_EQ(chat(R"("kv": {"budget": 64})").session.kv_memory, 0u) << "it replaces the default";
  EXPECT_EQ(chat(R"("kv": {"policy": "full"})").session.kv_memory, 0u);
}

// Every policy with every parameter at the default from its table.
TEST_F(Requests, KvTakesEveryParameterOfEveryPolicy) {
  for (const PolicyInfo& info : all_policies()) {
    Json kv = {{"policy", info.name}};
    for (const PolicyParam& param : info.params) {
      if (param.name == "ratio") continue;  // 0 is off; a session has either a ratio or a budget
      std::visit([&](const auto& value) { kv[param.name] = value; }, param.default_value);
    }
    const Request request = chat("\"kv\": " + kv.dump());
    EXPECT_EQ(request.session.kv.name, info.name) << kv;
  }
}

TEST_F(Requests, WrongValuesAreNamed) {
  expect_error(R"("n": 0)", "n", "a whole number from 1 to");
  expect_error(R"("n": 9)", "n", "at most 8 answers at a time, not 9");
  expect_error(R"("n": 1.5)", "n", "not 1.5");
  expect_error(R"("temperature": "hot")", "temperature",
               "'temperature' must be a number from 0 to 1000, not \"hot\"");
  expect_error(R"("top_p": 1.1)", "top_p", "not 1.1");
  expect_error(R"("max_tokens": -2)", "max_tokens", "a whole number from -1");
  expect_error(R"("max_tokens": 99999999999999999999)", "max_tokens", "a whole number");
  expect_error(R"("stop": 5)", "stop", "a string or an array of strings, not 5");
  expect_error(R"("stop": ["a", null])", "stop", "not null");
  expect_error(
      R"("stop": ["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17"])",
      "stop", "at most 16");
  expect_error(R"("stream": "yes")", "stream", "true or false");
  expect_error(R"("logprobs": 5)", "logprobs", "true or false, not 5");
  expect_error(R"("top_logprobs": 5)", "top_logprobs", "needs 'logprobs': true");
  expect_error(R"("logprobs": true, "top_logprobs": 21)", "top_logprobs", "from 0 to 20, not 21");
  expect_error(R"("logit_bias": {"x": 1})", "logit_bias", "'\"x\"' is not a token id");
  expect_error(R"("logit_bias": {"1": 101})", "logit_bias", "from -100 to 100, not 101");
  expect_error(R"("logit_bias": [1])", "logit_bias", "an object");
  expect_error(R"("audio": {})", "audio", "text only");
  expect_error(R"("modalities": ["text", "audio"])", "modalities", "text");
  expect_error(R"("kv": 5)", "kv", "an object, not 5");
  expect_error(R"("kv": {"policy": "best"})", "kv.policy", "best");
  expect_error(R"("kv": {"kernel_size": 4})", "kv.kernel_size", "odd");
  expect_error(R"("kv": {"budget": "many"})", "kv.budget", "not \"many\"");
  expect_error(R"("kv": {"policy": "snapkv", "budget": "auto"})", "kv.budget", "snapkv-max");
  expect_error(R"("kv": {"bugdet": 5})", "kv.bugdet", "it has: budget");
  expect_error(R"("kv": {"memory": "lots"})", "kv.memory", "a size from 0 B to 1 EiB");
  expect_error(R"("kv": {"memory": 10})", "kv", "'kv': memory is 10 B; the least that works is");
  expect_error(R"("kv": {"budget": 8, "window_size": 32})", "kv", "window");
  expect_error(R"("kv_report": "some")", "kv_report", "none, summary, positions, sources or all");
  expect_error(R"("response_format": {"type": "xml"})", "response_format.type", "json_object");
  expect_error(R"("response_format": {"type": "json_schema"})", "response_format.schema",
               "missing");
  expect_error(R"("grammar": "root ::= (")", "grammar", "line 1");
  expect_error(R"("grammar": "root ::= \"a\"", "response_format": {"type": "json_object"})",
               "response_format", "twice");
  expect_error(R"("chat_template_kwargs": {"messages": []})", "chat_template_kwargs",
               "request's own");
}

TEST_F(Requests, MessagesAreChecked) {
  const std::pair<const char*, const char*> kWrong[] = {
      {R"({})", "messages| 'messages' is missing"},
      {R"({"messages": []})", "at least one"},
      {R"({"messages": ["hi"]})", "messages[0]| 'messages[0]' must be an object, not \"hi\""},
      {R"({"messages": [{"content": "x"}]})", "messages[0].role| "},
      {R"({"messages": [{"role": "robot", "content": "x"}]})", "not \"robot\""},
      {R"({"messages": [{"role": "user"}]})",
       "messages[0].content| 'messages[0].content' is missing"},
      {R"({"messages": [{"role": "user", "content": 5}]})", "a string or an array of parts, not 5"},
      {R"({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]})",
       "messages[0].content[0].type| 'messages[0].content[0].type': this model reads text only"},
      {R"({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]})", "text only"},
  };
  for (const auto& [body, expected] : kWrong) {
    const std::string text = error(read_chat_completion, body);
    EXPECT_NE(text.find(expected), std::string::npos) << body << " gives " << text;
  }
  const Request parts = read(read_chat_completion, R"({"messages": [{"role": "developer", "content":
    [{"type": "text", "text": "Be "}, {"type": "text", "text": "brief"}]}]})");
  EXPECT_EQ(parts.prompt.chat.text,
            "<|im_start|>system\nBe brief<|im_end|>\n<|im_start|>assistant\n");
}

TEST_F(Requests, ToolsReachTheTemplate) {
  const Request request = read(read_chat_completion, R"({"messages": [
    {"role": "user", "content": "Weather?"},
    {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",
     "function": {"name": "get", "arguments": "{\"city\": \"Rome\"}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "sunny"}],
    "tools": [{"type": "function", "function": {"name": "get", "parameters": {"type": "object"}}}]})");
  const std::string& text = request.prompt.chat.text;
  EXPECT_NE(text.find(R"(<tools>{"type": "function", "function": {"name": "get")"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"("arguments": {"city": "Rome"}})"), std::string::npos) << text;
  EXPECT_NE(text.find("<|im_start|>tool\nsunny"), std::string::npos) << text;
  EXPECT_EQ(request.grammar, nullptr);
  const Request required =
      read(read_chat_completion, R"({"messages": [{"role": "user", "content": "x"}],
    "tools": [{"type": "function", "function": {"name": "get"}}], "tool_choice": "required"})");
  EXPECT_NE(required.grammar, nullptr);
  const Request none =
      read(read_chat_completion, R"({"messages": [{"role": "user", "content": "x"}],
    "tools": [{"type": "function", "function": {"name": "get"}}], "tool_choice": "none"})");
  EXPECT_EQ(none.prompt.chat.text.find("tools"), std::string::npos);
}

// For parallel_tool_calls: false.
TEST_F(Requests, AnswersMayEndWithTheirFirstCall) {
  const std::string tools = R"("tools": [{"type": "function", "function": {"name": "get"}}])";
  EXPECT_FALSE(chat(tools + R"(, "tool_calls": "strict")").make_watch);
  EXPECT_FALSE(chat(R"("parallel_tool_calls": false)").make_watch);
  const Request anthropic = read(read_messages, R"({"max_tokens": 7, "messages":
    [{"role": "user", "content": "x"}], "tools": [{"name": "get", "input_schema": {}}],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": true}})");
  for (const Request& request : {chat(tools + R"(, "parallel_tool_calls": false)"), anthropic}) {
    ASSERT_TRUE(request.make_watch);
    const auto first = request.make_watch(), second = request.make_watch();
    EXPECT_FALSE(first("Look: <tool_call>{\"name\": \"get\", ").ends);
    EXPECT_FALSE(second("\"arguments\": {}}").ends);
    EXPECT_TRUE(first("\"arguments\": {}}").ends);
  }
  // The end of an answer is found with the same settings that the answer is parsed with.
  const std::string opened = "<think>\n<tool_call>{\"name\": \"get\", \"arguments\": {}}";
  const std::string one = tools + R"(, "parallel_tool_calls": false)";
  EXPECT_FALSE(chat(one).make_watch()(opened).ends);
  EXPECT_TRUE(chat(one + R"(, "reasoning_format": "none")").make_watch()(opened).ends);
}

// The calls in earlier answers stay in the prompt.
TEST_F(Requests, EarlierCallsAreWrittenWithoutTools) {
  const std::string body = R"({"messages": [{"role": "user", "content": "Weather?"},
    {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",
     "function": {"name": "get", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "sunny"}]})";
  const std::string text = read(read_chat_completion, body).prompt.chat.text;
  EXPECT_NE(text.find("<tool_call>\n{\"name\": \"get\""), std::string::npos) << text;
}

TEST_F(Requests, WithoutAChatTemplateAreRefused) {
  options_.chat_template.reset();
  EXPECT_NE(error(read_chat_completion, R"({"messages": [{"role": "user", "content": "x"}]})")
                .find("no chat template"),
            std::string::npos);
}

TEST_F(Requests, CompletionsTakeTextsAndTokens) {
  EXPECT_EQ(read(read_completion, R"({"prompt": "Hello", "logprobs": 2})").top_logprobs, 2);
  EXPECT_EQ(read(read_completion, R"({"prompt": "Hello"})").prompt.tokens,
            engine_.model().tokenize("Hello"));
  EXPECT_EQ(read(read_completion, R"({"prompt": ["Hello"]})").prompt.chat.text, "Hello");
  EXPECT_EQ(read(read_completion, R"({"prompt": [1, 5, 6]})").prompt.tokens,
            (std::vector<int32_t>{1, 5, 6}));
  EXPECT_EQ(read(read_completion, R"({"prompt": [[1, 5]]})").prompt.tokens,
            (std::vector<int32_t>{1, 5}));
  engine_.options_.max_queue = 0;
  EXPECT_EQ(read(read_completion, R"({"prompt": ["Hello"]})").prompt.chat.text, "Hello");
  engine_.options_.max_queue = 3;
  for (const auto& [body, expected] : std::vector<std::pair<std::string, std::string>>{
           {R"({})", "'prompt' is missing"},
           {R"({"prompt": 5})", "an array of either, not 5"},
           {R"({"prompt": []})", "an array of either, not an array"},
           {R"({"prompt": [1, -1]})", "-1 is not a token id"},
           {R"({"prompt": ["a", 5]})", "an array of either, not 5"},
           {R"({"prompt": ["a", []]})", "an array of either, not an array"},
           {R"({"prompt": ["a", "b", "c", "d"]})", "at most 3 prompts are possible in one request"},
           {R"({"prompt": ["a", "b"], "return_progress": true})", "return_progress| "},
           {R"({"prompt": ["a", "b"], "kv_report": "positions"})", "kv_report| "},
           {R"({"prompt": "a", "echo": true, "logprobs": 1, "stream": true})",
            "echo| 'echo': with 'logprobs' it is not possible in a stream"},
           {R"({"prompt": "a", "suffix": "b"})",
            "suffix| 'suffix': the model can't fill in: its vocabulary has no tokens"},
           {R"({"prompt": "a", "best_of": 2})", "best_of| "},
           {R"({"prompt": "a", "logprobs": 6})", "from 0 to 5, not 6"},
           {R"({"prompt": "a", "logprobs": true})", "not true"}}) {
    const std::string text = error(read_completion, body);
    EXPECT_NE(text.find(expected), std::string::npos) << body << " gives " << text;
  }
}

TEST_F(Requests, CompletionsTakeSeveralPrompts) {
  const ApiContext context{engine_, options_};
  const Exchange exchange = read_completion(
      parse_body(R"({"prompt": ["One", [1, 5], "Three"], "n": 2, "seed": 4, "max_tokens": 7})"),
      context);
  EXPECT_EQ(exchange.answers->options().n, 6);
  EXPECT_EQ(exchange.request.prompt.tokens, engine_.model().tokenize("One"));
  ASSERT_EQ(exchange.others.size(), 2u);
  EXPECT_EQ(exchange.others[0].prompt.tokens, (std::vector<int32_t>{1, 5}));
  EXPECT_EQ(exchange.others[1].prompt.chat.text, "Three");
  for (const Request& other : exchange.others) {
    EXPECT_EQ(other.n, 2);
    EXPECT_EQ(other.max_tokens, 7);
    EXPECT_EQ(other.sampler.seed, 4);
    EXPECT_EQ(other.id, exchange.request.id);
  }
}

TEST_F(Requests, ResponsesBecomeConversations) {
  const Request request = read(read_response, R"({"instructions": "Be brief", "input": [
    {"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
    {"type": "reasoning", "summary": []},
    {"type": "function_call", "call_id": "c1", "name": "get", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "sunny"}],
    "tools": [{"type": "function", "name": "get", "parameters": {"type": "object"}}],
    "max_output_tokens": 9, "text": {"format": {"type": "text"}}})");
  EXPECT_TRUE(request.id.starts_with("resp_"));
  EXPECT_EQ(request.max_tokens, 9);
  const std::string& text = request.prompt.chat.text;
  EXPECT_NE(text.find("<|im_start|>system\nBe brief"), std::string::npos) << text;
  EXPECT_NE(text.find("assistant\n<tool_call>\n{\"name\": \"get\", \"arguments\": {}}"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("tool\nsunny"), std::string::npos) << text;
  EXPECT_NE(read(read_response, R"({"input": "x", "text": {"format": {"type": "json_schema",
    "name": "n", "schema": {"type": "object"}}}})")
                .grammar,
            nullptr);
  EXPECT_NE(
      error(read_response, R"({"input": "x", "previous_response_id": "r"})").find("stores no"),
      std::string::npos);
  EXPECT_NE(error(read_response, R"({"input": [{"type": "item_reference", "id": "a"}]})")
                .find("not \"item_reference\""),
            std::string::npos);
}

TEST_F(Requests, MessagesOfAnthropicBecomeConversations) {
  const Request request = read(read_messages, R"({"model": "claude", "max_tokens": 7,
    "system": [{"type": "text", "text": "Be brief"}], "stop_sequences": ["END"],
    "messages": [{"role": "user", "content": "Weather?"},
      {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "Looking"}, {"type": "tool_use", "id": "t1", "name": "get",
         "input": {"city": "Rome"}}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1",
        "content": [{"type": "text", "text": "sunny"}]}]}],
    "tools": [{"name": "get", "input_schema": {"type": "object"}}], "tool_choice": {"type": "any"}})");
  EXPECT_EQ(request.max_tokens, 7);
  EXPECT_EQ(request.stops, std::vector<std::string>{"END"});
  EXPECT_NE(request.grammar, nullptr);
  const std::string& text = request.prompt.chat.text;
  EXPECT_NE(
      text.find("Looking<tool_call>\n{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("<|im_start|>tool\nsunny<|im_end|>\n<|im_start|>assistant\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(count_message_tokens(parse_body(R"({"messages": [{"role": "user", "content": "Hi"}]})"),
                                 ApiContext{engine_, options_}),
            std::ssize(chat("").prompt.tokens));
  for (const auto& [body, expected] : std::vector<std::pair<std::string, std::string>>{
           {R"({"messages": [{"role": "user", "content": "x"}]})", "'max_tokens' is missing"},
           {R"({"max_tokens": 5, "messages": [{"role": "user", "content": [{"type": "image"}]}]})",
            "text only"},
           {R"({"max_tokens": 5, "messages": [{"role": "robot", "content": "x"}]})",
            "user, assistant or system"}}) {
    const std::string error_text = error(read_messages, body);
    EXPECT_NE(error_text.find(expected), std::string::npos) << body << " gives " << error_text;
  }
}

TEST_F(Requests, BodiesAreBounded) {
  const auto refused = [](const std::string& text) {
    try {
      (void)parse_body(text);
    } catch (const ApiError& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(refused(R"({"a": )" + std::string(200, '[') + std::string(200, ']') + "}")
                .find("deeper than 100"),
            std::string::npos);
  EXPECT_NE(refused(std::string(1'000'000, '[')).find("deeper"), std::string::npos);
  EXPECT_EQ(
      refused(R"({"a": "[[[[{{{{", "b": [)" + std::string(99, '[') + std::string(99, ']') + "]}")
          .substr(0, 8),
      "the body");
  std::string wide = "{\"a0\": 0";
  for (int i = 1; i < 5000; ++i) wide += ",\"a" + std::to_string(i) + "\": 0";
  EXPECT_NE(refused(wide + "}").find("more than 4096 members"), std::string::npos);
  std::string list = "{\"a\": [0";
  for (int i = 1; i < 100000; ++i) list += ",0";
  EXPECT_EQ(refused(list + "]}"), "accepted");
  for (const char* part : {"[]", "{}", "\"\""}) {  // each takes much more memory than its text
    std::string parts = R"({"a": [0)";
    for (int i = 0; i < kMostJsonParts; ++i) parts += std::string(",") + part;
    EXPECT_EQ(refused(parts + "]}"), "the body has more than 262144 strings, arrays and objects");
  }
  EXPECT_TRUE(refused("{").starts_with("the body is no JSON: parse error at line 1, column 2"))
      << refused("{");
  EXPECT_NE(refused("{\"a\": 1e999}").find("no JSON"), std::string::npos);
  EXPECT_NE(refused("[]").find("must be a JSON object, not an array"), std::string::npos);
  EXPECT_NE(refused("{\"a\": \"\xff\"}").find("no JSON"), std::string::npos);
}

// The JSON in a string of the body is also walked by recursion.
TEST_F(Requests, ArgumentsOfCallsMayNotNestWithoutEnd) {
  for (const int levels : {3, 300'000}) {
    std::string arguments, ends;
    for (int i = 0; i < levels; ++i) arguments += "{\"a\":", ends += "}";
    const Json held = arguments + "1" + ends;
    const Json call = {
        {"id", "1"}, {"type", "function"}, {"function", {{"name", "get"}, {"arguments", held}}}};
    const Json chat = {{"messages",
                        {{{"role", "user"}, {"content", "Hi"}},
                         {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", {call}}},
                         {{"role", "tool"}, {"tool_call_id", "1"}, {"content", "x"}}}}};
    EXPECT_FALSE(read(read_chat_completion, chat.dump()).prompt.tokens.empty());
    const Json response = {
        {"input",
         {{{"role", "user"}, {"content", "Hi"}},
          {{"type", "function_call"}, {"call_id", "1"}, {"name", "get"}, {"arguments", held}},
          {{"type", "function_call_output"}, {"call_id", "1"}, {"output", "x"}}}}};
    EXPECT_FALSE(read(read_response, response.dump()).prompt.tokens.empty());
  }
}

TEST_F(Requests, NamesOfFilesStayInTheirFolder) {
  EXPECT_EQ(snapshot_path("/d", "book", "name"), "/d/book.kv");
  EXPECT_EQ(snapshot_path("/d", "book.kv", "name"), "/d/book.kv");
  EXPECT_EQ(slot_path("/d", "a-1_b.bin", "filename"), "/d/a-1_b.bin");
  for (const std::string& name : std::vector<std::string>{
           "", ".", "..", "../x", "a/b", "/etc/passwd", ".hidden", "a b", "a\\b", "a%2fb",
           "\xc3\xa4", std::string("a\0b", 3), std::string(129, 'a')}) {
    EXPECT_THROW((void)snapshot_path("/d", name, "name"), ApiError) << name;
    EXPECT_THROW((void)slot_path("/d", name, "name"), ApiError) << name;
  }
  EXPECT_THROW((void)slot_path("/d", "book.kv", "filename"), ApiError);
  EXPECT_THROW((void)snapshot_path("", "book", "name"), ApiError);
  EXPECT_EQ(snapshot_name("book.kv"), "book");
  EXPECT_EQ(snapshot_name("book"), "book");
  options_.snapshot_dir = testing::TempDir();
  const std::string path = options_.snapshot_dir + "/book.kv";
  Session session(load_model("needle"), {});
  session.prefill(engine_.model().tokenize("Once"));
  session.save(path, document_notes({}, "", ""));
  const Request continued =
      read(read_completion, R"({"prompt": "Why?", "kv": {"snapshot": "book"}})");
  ASSERT_TRUE(continued.document);
  EXPECT_EQ(continued.document, engine_.documents().open(path));
  EXPECT_EQ(continued.document->file.n_tokens, session.n_past());
  EXPECT_EQ(continued.prompt.tokens, engine_.model().tokenize("Why?", /*add_special=*/false));
  const std::string body = R"({"messages": [{"role": "user", "content": "Why?"}])";
  const auto count = [&](const std::string& kv) {
    return count_message_tokens(parse_body(body + kv + "}"), ApiContext{engine_, options_});
  };
  EXPECT_EQ(count(R"(, "kv": {"snapshot": "book"})"),
            session.n_past() + std::ssize(continued.prompt.tokens));
  EXPECT_LT(count(""), 100);
  EXPECT_THROW((void)chat(R"("kv": {"snapshot": "other"})"), ApiError);
  expect_error(R"("kv": {"snapshot": "../book"})", "kv.snapshot", "not begin with a dot");
}

// The messages after a document are rendered with the request's variables, like any conversation.
TEST_F(Requests, VariablesReachTheTemplateOfADocument) {
  options_.snapshot_dir = testing::TempDir();
  Session session(load_model("needle"), {});
  session.prefill(engine_.model().tokenize("Once"));
  DocumentForm form;
  form.template_name = "thinks";
  form.template_source =
      "{% if style %}Be {{ style }}. {% endif %}{% for message in messages %}[{{ message.content "
      "}}]"
      "{% endfor %}{% if enable_thinking is defined and not enable_thinking %}<think></think>"
      "{% endif %}";
  session.save(options_.snapshot_dir + "/thinks.kv", document_notes(form, "", ""));
  const std::string snapshot = R"("kv": {"snapshot": "thinks"})";
  EXPECT_EQ(chat(snapshot).prompt.chat.text, "Hi]");
  const std::string off = R"(, "chat_template_kwargs": {"enable_thinking": false})";
  EXPECT_EQ(chat(snapshot + off).prompt.chat.text, "Hi]<think></think>");
  const Request anthropic = read(read_messages, R"({"max_tokens": 7, "thinking": {"type":
    "disabled"}, "messages": [{"role": "user", "content": "Hi"}], )" +
                                                    snapshot + "}");
  EXPECT_EQ(anthropic.prompt.chat.text, "Hi]<think></think>");
  expect_error(snapshot + R"(, "chat_template_kwargs": {"style": "brief"})", "chat_template_kwargs",
               "before the document");
}

}  // namespace
}  // namespace snapkv::test
