// SPDX-License-Identifier: MIT
// Answers in every format, whole and streamed, compared with JSON written by hand.
#include <gtest/gtest.h>

#include <limits>

#include "server/api/exchange.h"
#include "tests/server/scripted_engine.h"

namespace snapkv::test {
namespace {

using namespace server;

class Formats : public testing::Test {
 protected:
  ScriptedEngine engine_;
  ApiOptions options_ = api_options();

  std::unique_ptr<Answers> answers(ReadExchange read, const std::string& body) {
    return read(parse_body(body), ApiContext{engine_, options_}).answers;
  }
  /// Everything that is sent for these texts.
  static std::string take(Answers& answers, const std::vector<std::string>& texts, size_t n = 1000,
                          FinishReason reason = FinishReason::stop) {
    RequestUpdates updates;
    push_answer(updates, texts, n, reason);
    std::string events;
    while (!answers.complete()) {
      events += answers.take(*updates.next(std::chrono::milliseconds(0)));
    }
    return events;
  }
  /// The data of the events. The name of an event, if it has one, must be its type.
  static std::vector<Json> data(const std::string& events) {
    std::vector<Json> all;
    for (size_t at = 0; at < events.size();) {
      const size_t end = events.find("\n\n", at);
      std::string event = events.substr(at, end - at), name;
      at = end + 2;
      if (event.starts_with("event: ")) {
        name = event.substr(7, event.find('\n') - 7);
        event = event.substr(event.find('\n') + 1);
      }
      EXPECT_TRUE(event.starts_with("data: ")) << event;
      const std::string text = event.substr(6);
      Json json = text == "[DONE]" ? Json(text) : Json::parse(text);
      if (!name.empty()) {
        EXPECT_EQ(json["type"], name);
      }
      all.push_back(json);
    }
    return all;
  }
};

const char* const kChat = R"({"messages": [{"role": "user", "content": "Hi"}])";
const char* const kTools =
    R"("tools": [{"type": "function", "function": {"name": "get", "parameters": {}}}])";

const Json kUsage = Json::parse(R"({"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13,
  "prompt_tokens_details": {"cached_tokens": 4},
  "completion_tokens_details": {"reasoning_tokens": 0}})");
const Json kKv = Json::parse(R"({"policy": "snapkv", "tokens_before": 10, "tokens_kept": 8,
  "bytes_before": 1000, "bytes_after": 800, "compress_ms": 250.0, "reused_tokens": 4})");
const Json kTimings = Json::parse(R"({"cache_n": 4, "prompt_n": 6, "prompt_ms": 500.0,
  "prompt_per_token_ms": 83.33333333333333, "prompt_per_second": 12.0, "predicted_n": 3,
  "predicted_ms": 1500.0, "predicted_per_token_ms": 500.0, "predicted_per_second": 2.0})");

TEST_F(Formats, ChatCompletion) {
  const auto chat = answers(read_chat_completion, std::string(kChat) + "}");
  EXPECT_EQ(take(*chat, {"<think>hm</think>\n\nHello"}), "");
  const Json json = chat->plain();
  Json expected = Json::parse(R"({"object": "chat.completion", "model": "needle",
    "system_fingerprint": "snapkv", "choices": [{"index": 0, "message": {"role": "assistant",
    "content": "Hello", "refusal": null, "reasoning_content": "hm"}, "logprobs": null,
    "finish_reason": "stop"}]})");
  expected["id"] = chat->options().id;
  expected["created"] = chat->options().created;
  expected["usage"] = kUsage;
  expected["timings"] = kTimings;
  expected["kv"] = kKv;
  EXPECT_EQ(nlohmann::json(json), nlohmann::json(expected)) << json;
}

TEST_F(Formats, ChatCompletionOfTools) {
  const auto chat = answers(read_chat_completion, std::string(kChat) + ", " + kTools + "}");
  (void)take(*chat, {"<tool_call>{\"name\": \"get\", \"arguments\": {\"a\": 1}}</tool_call>"});
  const Json choice = chat->plain()["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_TRUE(choice["message"]["content"].is_null());
  const Json call = choice["message"]["tool_calls"][0];
  EXPECT_TRUE(call["id"].get<std::string>().starts_with("call_"));
  EXPECT_EQ(call["type"], "function");
  EXPECT_EQ(call["function"], Json::parse(R"({"name": "get", "arguments": "{\"a\": 1}"})"));
}

// A grammar applies from the first token, even if the template has already begun the reasoning.
TEST_F(Formats, WhatAGrammarMadeIsTheAnswer) {
  const std::string opens = std::string(kHermesTemplate) + "<think>\n";
  options_.chat_template = options_.tool_template = ChatTemplate::parse(opens, "opens");
  const auto message = [&](const std::string& fields, const std::string& text) {
    const auto chat = answers(read_chat_completion, std::string(kChat) + fields + "}");
    (void)take(*chat, {text});
    return chat->plain()["choices"][0]["message"];
  };
  EXPECT_EQ(message("", "hm</think>Hi")["content"], "Hi");
  const Json json = message(R"(, "response_format": {"type": "json_object"})", "{\"a\": 1}");
  EXPECT_EQ(json["content"], "{\"a\": 1}");
  EXPECT_FALSE(json.contains("reasoning_content")) << json;
  const Json call = message(", " + std::string(kTools) + R"(, "tool_choice": "required")",
                            "<tool_call>\n{\"name\": \"get\", \"arguments\": {}}\n</tool_call>");
  EXPECT_FALSE(call.contains("reasoning_content")) << call;
  EXPECT_EQ(call["tool_calls"][0]["function"]["name"], "get");
}

TEST_F(Formats, ChatStream) {
  const auto chat =
      answers(read_chat_completion,
              std::string(kChat) +
                  R"(, "n": 2, "stream": true, "stream_options": {"include_usage": true}})");
  const std::vector<Json> events = data(take(*chat, {"Hello", "Bye"}, 3, FinishReason::length));
  std::vector<std::string> seen;
  for (const Json& event : events) {
    if (event == "[DONE]") {
      seen.push_back("done");
      continue;
    }
    EXPECT_EQ(event["id"], chat->options().id);
    EXPECT_EQ(event["created"], chat->options().created);
    EXPECT_EQ(event["object"], "chat.completion.chunk");
    if (event["choices"].empty()) {
      Json usage = kUsage;  // the sum of both answers
      usage["completion_tokens"] = 6;
      usage["total_tokens"] = 16;
      EXPECT_EQ(event["usage"], usage);
      seen.push_back("usage");
      continue;
    }
    EXPECT_TRUE(event.contains("usage") && event["usage"].is_null());
    const Json& choice = event["choices"][0];
    seen.push_back(std::to_string(choice["index"].get<int>()) + choice["delta"].dump() +
                   (choice["finish_reason"].is_null() ? "" : choice["finish_reason"].dump()));
  }
  const std::vector<std::string> expected = {R"(0{"role":"assistant","content":""})",
                                             R"(1{"role":"assistant","content":""})",
                                             R"(0{"content":"Hel"})",
                                             R"(0{"content":"lo"})",
                                             R"(0{}"length")",
                                             R"(1{"content":"Bye"})",
                                             R"(1{}"length")",
                                             "usage",
                                             "done"};
  EXPECT_EQ(seen, expected);
  const Json& last = events[events.size() - 3];
  EXPECT_EQ(last["kv"], kKv) << "the last chunk of a choice has the reports";
  EXPECT_TRUE(last.contains("timings"));
}

TEST_F(Formats, ChatStreamOfTools) {
  const auto chat =
      answers(read_chat_completion, std::string(kChat) + ", " + kTools + R"(, "stream": true})");
  const std::string text = "<tool_call>{\"name\": \"get\", \"arguments\": {\"a\": 1}}</tool_call>";
  std::string arguments, name;
  std::vector<std::string> reasons;
  for (const Json& event : data(take(*chat, {text}, 5))) {
    if (event == "[DONE]") continue;
    const Json& choice = event["choices"][0];
    if (!choice["finish_reason"].is_null()) reasons.push_back(choice["finish_reason"]);
    if (!choice["delta"].contains("tool_calls")) continue;
    const Json& call = choice["delta"]["tool_calls"][0];
    EXPECT_EQ(call["index"], 0);
    if (call.contains("id")) {
      EXPECT_EQ(name + arguments, "") << "the name comes first";
      name = call["function"]["name"];
    }
    arguments += call["function"]["arguments"].get<std::string>();
  }
  EXPECT_EQ(name, "get");
  EXPECT_EQ(arguments, "{\"a\": 1}");
  EXPECT_EQ(reasons, std::vector<std::string>{"tool_calls"});
}

TEST_F(Formats, Logprobs) {
  const auto chat = answers(read_chat_completion,
                            std::string(kChat) + R"(, "logprobs": true, "top_logprobs": 1})");
  (void)chat->take(PromptRead{});
  AnswerPart::Token token;
  token.chosen.bytes = "\xc3";
  token.chosen.logprob = -0.5;
  token.top.resize(1);
  token.top[0].bytes = "b";
  token.top[0].logprob = -std::numeric_limits<double>::infinity();
  (void)chat->take(AnswerPart{0, "", {token}});
  (void)chat->take(AnswerEnd{0, FinishReason::stop, "", 1, 0.1});
  EXPECT_EQ(chat->plain()["choices"][0]["logprobs"],
            Json::parse(R"({"content": [{"token": "\ufffd", "logprob": -0.5, "bytes": [195],
              "top_logprobs": [{"token": "b", "logprob": -9999.0, "bytes": [98]}]}],
              "refusal": null})"));
  const auto text = answers(read_completion, R"({"prompt": "x", "logprobs": 1})");
  (void)text->take(PromptRead{});
  AnswerPart::Token a, b;
  a.chosen.bytes = "a";
  a.chosen.logprob = -1.0;
  a.top = {a.chosen};
  b.chosen.bytes = "b";
  b.chosen.logprob = -2.0;
  (void)text->take(AnswerPart{0, "ab", {a, b}});
  (void)text->take(AnswerEnd{0, FinishReason::length, "", 2, 0.1});
  EXPECT_EQ(text->plain()["choices"][0],
            Json::parse(R"({"text": "ab", "index": 0, "logprobs": {"tokens": ["a", "b"],
              "token_logprobs": [-1.0, -2.0], "top_logprobs": [{"a": -1.0}, {}],
              "text_offset": [0, 1]}, "finish_reason": "length"})"));
}

TEST_F(Formats, ProgressIsLlamaServers) {
  const auto chat = answers(read_chat_completion,
                            std::string(kChat) + R"(, "stream": true, "return_progress": true})");
  const auto events = data(chat->take(PromptProgress{100, 20, 0.5, 1.25}));
  ASSERT_EQ(events.size(), 2u) << "the role comes first";
  EXPECT_EQ(events[1]["prompt_progress"],
            Json::parse(R"({"total": 100, "cache": 20, "processed": 60, "time_ms": 1250})"));
}

TEST_F(Formats, Completion) {
  const auto text = answers(read_completion, R"({"prompt": "x", "n": 2, "kv_report": "none"})");
  (void)take(*text, {"one<think>", "two"});
  Json expected = Json::parse(R"({"object": "text_completion", "model": "needle", "choices": [
    {"text": "one<think>", "index": 0, "logprobs": null, "finish_reason": "stop"},
    {"text": "two", "index": 1, "logprobs": null, "finish_reason": "stop"}]})");
  const Json json = text->plain();
  EXPECT_EQ(json["choices"], expected["choices"]);
  EXPECT_EQ(json["object"], expected["object"]);
  EXPECT_FALSE(json.contains("kv"));
  const auto stream = answers(read_completion, R"({"prompt": "x", "stream": true})");
  const auto events = data(take(*stream, {"Hello"}, 2));
  std::string all;
  for (const Json& event : events) {
    if (event != "[DONE]") all += event["choices"][0]["text"].get<std::string>();
  }
  EXPECT_EQ(all, "Hello");
  EXPECT_EQ(events[events.size() - 2]["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(events.back(), "[DONE]");
}

TEST_F(Formats, CompletionWithEcho) {
  const auto plain = answers(read_completion, R"({"prompt": ["A ", "B "], "n": 2, "echo": true})");
  (void)take(*plain, {"one", "two", "three", "four"});
  const Json choices = plain->plain()["choices"];
  const std::vector<std::string> expected = {"A one", "A two", "B three", "B four"};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(choices[i]["text"], expected[i]);
    EXPECT_EQ(choices[i]["index"], i);
  }
  const auto stream =
      answers(read_completion, R"({"prompt": ["A ", "B "], "n": 2, "echo": true, "stream": true})");
  std::vector<std::string> texts(4);
  for (const Json& event : data(take(*stream, {"one", "two", "three", "four"}, 2))) {
    if (event == "[DONE]") continue;
    const Json& choice = event["choices"][0];
    texts[choice["index"].get<size_t>()] += choice["text"].get<std::string>();
  }
  EXPECT_EQ(texts, expected);
}

// The usage, timings and KV numbers are those of all prompts together.
TEST_F(Formats, CompletionOfSeveralPrompts) {
  const auto text = answers(read_completion, R"({"prompt": ["A", "B"]})");
  for (size_t i = 0; i < 2; ++i) {
    PromptRead read;
    read.n_tokens = 10;
    read.n_reused = 4;
    read.seconds = 0.5 + i;
    read.kv = {"snapkv", 10, 8, 1000, 800, 0.25, 4, {}};
    (void)text->take(read);
    (void)text->take(AnswerPart{i, "x", {}});
    EXPECT_FALSE(text->complete());
    (void)text->take(AnswerEnd{i, FinishReason::stop, "", 3, 1.5});
  }
  EXPECT_TRUE(text->complete());
  const Json json = text->plain();
  EXPECT_EQ(json["usage"], Json::parse(R"({"prompt_tokens": 20, "completion_tokens": 6,
    "total_tokens": 26, "prompt_tokens_details": {"cached_tokens": 8},
    "completion_tokens_details": {"reasoning_tokens": 0}})"));
  EXPECT_EQ(json["timings"]["prompt_ms"], 1500.0);
  EXPECT_EQ(json["kv"]["tokens_before"], 20);
  EXPECT_EQ(json["kv"]["tokens_kept"], 16);
}

TEST_F(Formats, GuessedTokensAreCounted) {
  const auto chat = answers(read_chat_completion, std::string(kChat) + "}");
  (void)chat->take(AnswerEnd{0, FinishReason::stop, "", 8, 1.5, {}, 7, 5});
  const Json json = chat->plain();
  EXPECT_EQ(json["usage"]["completion_tokens_details"],
            Json::parse(R"({"reasoning_tokens": 0, "accepted_prediction_tokens": 5,
              "rejected_prediction_tokens": 2})"));
  EXPECT_EQ(json["timings"]["draft_n"], 7);
  EXPECT_EQ(json["timings"]["draft_n_accepted"], 5);
}

TEST_F(Formats, Response) {
  const std::string tools = R"("tools": [{"type": "function", "name": "get", "parameters": {}}])";
  const std::string written =
      "<think>hm</think>Look.<tool_call>{\"name\": \"get\", \"arguments\": {\"a\": 1}}</tool_call>";
  const auto plain = answers(read_response, R"({"input": "x", )" + tools + "}");
  (void)take(*plain, {written});
  const Json json = plain->plain();
  EXPECT_EQ(json["object"], "response");
  EXPECT_EQ(json["status"], "completed");
  ASSERT_EQ(json["output"].size(), 3u) << json;
  EXPECT_EQ(json["output"][0]["type"], "reasoning");
  EXPECT_EQ(json["output"][0]["content"][0]["text"], "hm");
  EXPECT_EQ(json["output"][1]["content"][0]["text"], "Look.");
  EXPECT_EQ(json["output"][2]["name"], "get");
  EXPECT_EQ(json["output"][2]["arguments"], "{\"a\": 1}");
  EXPECT_EQ(json["usage"]["input_tokens"], 10);
  EXPECT_EQ(json["usage"]["input_tokens_details"]["cached_tokens"], 4);

  const auto stream = answers(read_response, R"({"input": "x", "stream": true, )" + tools + "}");
  std::vector<std::string> types;
  const auto events = data(take(*stream, {written}));
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i]["sequence_number"], i);
    types.push_back(events[i]["type"].get<std::string>().substr(9));
  }
  const std::vector<std::string> expected = {"created",
                                             "in_progress",
                                             "output_item.added",
                                             "content_part.added",
                                             "reasoning_text.delta",
                                             "reasoning_text.done",
                                             "content_part.done",
                                             "output_item.done",
                                             "output_item.added",
                                             "content_part.added",
                                             "output_text.delta",
                                             "output_text.done",
                                             "content_part.done",
                                             "output_item.done",
                                             "output_item.added",
                                             "function_call_arguments.delta",
                                             "function_call_arguments.done",
                                             "output_item.done",
                                             "completed"};
  EXPECT_EQ(types, expected);
  EXPECT_EQ(events.back()["response"]["output"].size(), 3u);
  EXPECT_EQ(events[11]["text"], "Look.");
  EXPECT_EQ(events[16]["arguments"], "{\"a\": 1}");
  EXPECT_EQ(events[17]["output_index"], 2);
}

TEST_F(Formats, ResponseThatIsCutIsIncomplete) {
  const auto response = answers(read_response, R"({"input": "x"})");
  (void)take(*response, {"Hel"}, 10, FinishReason::length);
  EXPECT_EQ(response->plain()["status"], "incomplete");
  EXPECT_EQ(response->plain()["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(response->plain()["output"][0]["status"], "incomplete");
  const auto stream = answers(read_response, R"({"input": "x", "stream": true})");
  const auto events = data(take(*stream, {"<think>hm</think>Hel"}, 100, FinishReason::length));
  EXPECT_EQ(events.back()["type"], "response.incomplete");
  EXPECT_EQ(events.back()["response"]["output"][1]["status"], "incomplete");
  EXPECT_EQ(events[events.size() - 2]["item"]["status"], "incomplete");
}

// Text that may begin a stop string, a tag or a call is held back, but the probabilities of its
// tokens must not be lost.
TEST_F(Formats, ResponseStreamHasTheLogprobsOfAllTokens) {
  const std::string body = R"({"input": "x", "top_logprobs": 1, "stream": )";
  const auto send = [&](Answers& response) {
    std::string events = response.take(PromptRead{});
    AnswerPart::Token token;
    token.chosen.bytes = "a";
    token.top = {token.chosen};
    for (const char* text : {"", "ab", "", "<thi", "nk", "", "c", ""}) {
      events += response.take(AnswerPart{0, text, {token}});
    }
    return events + response.take(AnswerEnd{0, FinishReason::stop, "", 8, 0.1});
  };
  const auto plain = answers(read_response, body + "false}");
  (void)send(*plain);
  EXPECT_EQ(plain->plain()["output"][0]["content"][0]["logprobs"].size(), 8u);
  const auto stream = answers(read_response, body + "true}");
  const auto events = data(send(*stream));
  size_t n = 0;
  std::string text;
  for (const Json& event : events) {
    if (event["type"] == "response.output_text.delta") {
      n += event["logprobs"].size();
      text += event["delta"].get<std::string>();
    }
    if (event["type"] == "response.output_text.done") {
      EXPECT_EQ(event["logprobs"].size(), 8u);
      EXPECT_EQ(event["text"], text);
    }
  }
  EXPECT_EQ(n, 8u);
  EXPECT_EQ(text, plain->plain()["output"][0]["content"][0]["text"].get<std::string>());
  EXPECT_EQ(events.back()["response"]["output"][0]["content"][0]["logprobs"].size(), 8u);
}

TEST_F(Formats, Message) {
  const std::string head = R"({"max_tokens": 9, "model": "claude-x", "messages":
    [{"role": "user", "content": "x"}], "tools": [{"name": "get", "input_schema": {}}])";
  const std::string written =
      "<think>hm</think>Look.<tool_call>{\"name\": \"get\", \"arguments\": {\"a\": 1}}</tool_call>";
  const auto plain = answers(read_messages, head + "}");
  (void)take(*plain, {written});
  const Json json = plain->plain();
  EXPECT_EQ(json["type"], "message");
  EXPECT_EQ(json["model"], "claude-x");
  EXPECT_EQ(json["stop_reason"], "tool_use");
  ASSERT_EQ(json["content"].size(), 3u) << json;
  EXPECT_EQ(json["content"][0]["thinking"], "hm");
  EXPECT_EQ(json["content"][1], Json::parse(R"({"type": "text", "text": "Look."})"));
  EXPECT_EQ(json["content"][2]["input"], Json::parse(R"({"a": 1})"));
  EXPECT_EQ(json["usage"]["input_tokens"], 6);
  EXPECT_EQ(json["usage"]["cache_read_input_tokens"], 4);
  EXPECT_EQ(json["usage"]["output_tokens"], 3);

  const auto stream = answers(read_messages, head + R"(, "stream": true})");
  const auto events = data(take(*stream, {written}));
  std::vector<std::string> types;
  for (const Json& event : events) types.push_back(event["type"]);
  const std::vector<std::string> expected = {
      "message_start",       "content_block_start", "content_block_delta", "content_block_stop",
      "content_block_start", "content_block_delta", "content_block_stop",  "content_block_start",
      "content_block_delta", "content_block_stop",  "message_delta",       "message_stop"};
  EXPECT_EQ(types, expected);
  EXPECT_EQ(events[0]["message"]["usage"]["input_tokens"], 6);
  EXPECT_EQ(events[8]["delta"],
            Json::parse(R"({"type": "input_json_delta", "partial_json": "{\"a\": 1}"})"));
  EXPECT_EQ(events[10]["delta"]["stop_reason"], "tool_use");
}

// Clients give a stream up that brings no events for some minutes, and their libraries leave pings
// out: what stands for one is an event that may be repeated.
TEST_F(Formats, PingsAreEventsThatClientsCount) {
  const auto types = [](const std::string& events) {
    std::vector<std::string> all;
    for (const Json& event : data(events)) all.push_back(event["type"]);
    return all;
  };
  const auto message = answers(
      read_messages,
      R"({"max_tokens": 9, "messages": [{"role": "user", "content": "x"}], "stream": true})");
  using Types = std::vector<std::string>;
  EXPECT_EQ(types(message->ping()), (Types{"ping", "message_start"}));
  const std::string second = message->ping();
  EXPECT_EQ(types(second), (Types{"ping", "message_delta"}));
  EXPECT_EQ(data(second)[1]["delta"]["stop_reason"], Json(nullptr));
  (void)message->take(PromptRead{});
  EXPECT_EQ(types(message->take(AnswerPart{0, "text", {}})),
            (Types{"content_block_start", "content_block_delta"}));
  EXPECT_EQ(types(message->ping()), (Types{"ping"}));
  EXPECT_EQ(types(message->take(AnswerEnd{})),
            (Types{"content_block_stop", "message_delta", "message_stop"}));

  const auto response = answers(read_response, R"({"input": "x", "stream": true})");
  EXPECT_EQ(types(response->ping()),
            (Types{"response.created", "response.in_progress", "response.in_progress"}));
  EXPECT_EQ(types(response->ping()), (Types{"response.in_progress"}));
  (void)response->take(PromptRead{});
  (void)response->take(AnswerPart{0, "text", {}});
  EXPECT_EQ(response->ping(), ": ping\n\n");
  EXPECT_EQ(types(response->take(AnswerEnd{})).back(), "response.completed");
}

// A call that breaks off or is not JSON is not a call that a client could make.
TEST_F(Formats, CallsThatAreNotCompleteAreNotReportedAsCalls) {
  const std::string messages = R"({"max_tokens": 9, "messages": [{"role": "user", "content": "x"}],
    "tools": [{"name": "get", "input_schema": {}}])";
  const std::string responses = R"({"input": "x",
    "tools": [{"type": "function", "name": "get", "parameters": {}}])";
  const std::string call = R"(<tool_call>{"name": "get", "arguments": {)";
  const struct {
    const char* written;
    FinishReason reason;
    const char *stop, *finish_reason, *stop_reason;
  } cases[] = {{R"("t": ")", FinishReason::stop, "abc", "stop", "stop_sequence"},
               {R"("t": ")", FinishReason::length, "", "length", "max_tokens"},
               {R"("t": "abc", oops}})", FinishReason::stop, "", "stop", "end_turn"},
               {R"("t": 1}})", FinishReason::stop, "abc", "tool_calls", "tool_use"},
               {R"("t": 1}})", FinishReason::length, "", "length", "max_tokens"}};
  for (const auto& c : cases) {
    const std::string written = c.written;
    SCOPED_TRACE(written + " " + c.stop_reason);
    const bool is_complete = written == R"("t": 1}})";
    const bool names_stop = c.stop_reason == std::string("stop_sequence");
    const Json stop_sequence = names_stop ? Json(c.stop) : Json(nullptr);
    const auto answered = [&](ReadExchange read, const std::string& body) {
      auto all = answers(read, body);
      std::string events = all->take(PromptRead{});
      events += all->take(AnswerPart{0, call + written, {}});
      events += all->take(AnswerEnd{0, c.reason, c.stop, 1, 0.1});
      return all->options().stream ? Json(data(events)) : all->plain();
    };
    const Json chat =
        answered(read_chat_completion, std::string(kChat) + ", " + kTools + "}")["choices"][0];
    EXPECT_EQ(chat["finish_reason"], c.finish_reason);
    const std::string arguments =
        "{" + written.substr(0, written.find("}}")) + (written.ends_with("}}") ? "}" : "");
    EXPECT_EQ(chat["message"]["tool_calls"][0]["function"]["arguments"], arguments);
    const Json message = answered(read_messages, messages + "}");
    EXPECT_EQ(message["stop_reason"], c.stop_reason);
    EXPECT_EQ(message["stop_sequence"], stop_sequence);
    ASSERT_EQ(message["content"].size(), 1u);
    const Json& block = message["content"][0];
    if (is_complete) {
      EXPECT_EQ(block["type"], "tool_use");
      EXPECT_EQ(block["input"], Json::parse(R"({"t": 1})"));
    } else {
      EXPECT_EQ(block,
                Json({{"type", "text"}, {"text", R"({"name": "get", "arguments": )" + arguments}}));
    }
    for (const char* end : {"}", R"(, "stream": true})"}) {
      Json response = answered(read_response, responses + end);
      if (response.is_array()) response = response.back()["response"];
      const Json& item = response["output"].back();
      EXPECT_EQ(item["type"], "function_call");
      EXPECT_EQ(item["arguments"], arguments);
      EXPECT_EQ(item["status"],
                c.reason == FinishReason::stop && is_complete ? "completed" : "incomplete");
    }
    const Json events = answered(read_messages, messages + R"(, "stream": true})");
    const Json& last = events[events.size() - 2]["delta"];
    EXPECT_EQ(last["stop_reason"], c.stop_reason);
    EXPECT_EQ(last["stop_sequence"], stop_sequence);
  }
}

TEST_F(Formats, MessageStopsSayWhy) {
  const std::string body = R"({"max_tokens": 9, "messages": [{"role": "user", "content": "x"}]})";
  const std::pair<AnswerEnd, const char*> kEnds[] = {
      {{0, FinishReason::stop, "", 1, 0.1}, "end_turn"},
      {{0, FinishReason::stop, "END", 1, 0.1}, "stop_sequence"},
      {{0, FinishReason::length, "", 1, 0.1}, "max_tokens"}};
  for (const auto& [end, reason] : kEnds) {
    const auto message = answers(read_messages, body);
    (void)message->take(PromptRead{});
    (void)message->take(end);
    EXPECT_EQ(message->plain()["stop_reason"], reason);
    EXPECT_EQ(message->plain()["stop_sequence"], end.stop.empty() ? Json() : Json(end.stop));
  }
}

TEST_F(Formats, Errors) {
  const ApiError error(400, "too long: 12 tokens of 8", "context_length_exceeded", "messages");
  EXPECT_EQ(openai_error(error), Json::parse(R"({"error": {"message": "too long: 12 tokens of 8",
              "type": "invalid_request_error", "param": "messages",
              "code": "context_length_exceeded"}})"));
  EXPECT_EQ(anthropic_error(ApiError(503, "loading", "loading")),
            Json::parse(R"({"type": "error", "error": {"type": "overloaded_error",
              "message": "loading"}})"));
  EXPECT_EQ(api_error(Refused(Refused::Kind::queue_full, "full", 3)).status, 429);
  EXPECT_EQ(api_error(Refused(Refused::Kind::queue_full, "full", 3)).retry_after, 3);
  EXPECT_EQ(api_error(Refused(Refused::Kind::never_fits, "at most 5")).status, 400);
  EXPECT_EQ(api_error(Refused(Refused::Kind::context_exceeded, "12 of 8")).code,
            "context_length_exceeded");
  EXPECT_EQ(api_error(Failure{Failure::Kind::timeout, "late"}).status, 504);
}

}  // namespace
}  // namespace snapkv::test
