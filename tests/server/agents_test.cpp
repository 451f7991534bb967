// SPDX-License-Identifier: MIT
// Requests as agents and their libraries send them: tools for templates that write none, an answer
// that has begun, what Claude Code and Codex add, and hints that change nothing.
#include <gtest/gtest.h>

#include "chat/message_forms.h"
#include "tests/server/request_support.h"

namespace snapkv::test {

using namespace chat;

namespace {

const std::string kTool =
    R"("tools": [{"type": "function", "function": {"name": "get", "parameters": {"type": "object",
       "properties": {"city": {"type": "string"}}, "required": ["city"]}}}])";
const std::string kCall =
    "<tool_call>\n{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}\n"
    "</tool_call>";

class Agents : public Requests {
 protected:
  static bool accepts(const Grammar& grammar, const std::string& text) {
    static const auto vocabulary =
        std::make_shared<const GrammarVocabulary>(ScriptedEngine().model().tokenizer());
    GrammarMatcher matcher(grammar, vocabulary);
    try {
      matcher.accept_text(text);
    } catch (const Error&) {
      return false;
    }
    return matcher.is_complete();
  }
  Exchange exchange(ReadExchange read_exchange, const std::string& body) {
    return read_exchange(parse_body(body), ApiContext{engine_, options_});
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
};

TEST_F(Agents, GetToolsWhereTheTemplateWritesNone) {
  options_.tool_template = ChatTemplate::built_in("chatml");
  const Request request = chat(kTool);
  const std::string& text = request.prompt.chat.text;
  EXPECT_TRUE(text.starts_with("<|im_start|>system\nYou can call functions")) << text;
  EXPECT_TRUE(has(text, R"({"type":"function","function":{"name":"get")")) << text;
  ASSERT_EQ(request.warnings.size(), 1u);
  EXPECT_TRUE(has(request.warnings[0], "the chat template writes none")) << request.warnings[0];
  ASSERT_NE(request.grammar, nullptr);
  for (const char* answer : {"", "Hello <b>there</b> <tool", "<"}) {
    EXPECT_TRUE(accepts(*request.grammar, answer)) << answer;
  }
  EXPECT_TRUE(accepts(*request.grammar, kCall));
  EXPECT_TRUE(accepts(*request.grammar, "Let me see. <<" + kCall + "\n" + kCall));
  EXPECT_FALSE(accepts(*request.grammar, "<tool_call>\n{\"name\": \"put\""));
  EXPECT_FALSE(accepts(*request.grammar, kCall + " and text"));
  const Request required = chat(kTool + R"(, "tool_choice": "required")");
  EXPECT_FALSE(accepts(*required.grammar, "Hello"));
  EXPECT_TRUE(accepts(*required.grammar, kCall));
  // calls and results of earlier answers are text too, with and without tools
  const std::string history = R"({"messages": [{"role": "system", "content": "Be brief"},
    {"role": "user", "content": "Weather?"},
    {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",
     "function": {"name": "get", "arguments": "{\"city\": \"Rome\"}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    {"role": "tool", "tool_call_id": "c2", "content": "dry"}])";
  for (const std::string& end : {std::string("}"), ", " + kTool + "}"}) {
    const std::string all = read(read_chat_completion, history + end).prompt.chat.text;
    EXPECT_TRUE(has(all, R"(<tool_call>
{"name": "get", "arguments": {"city": "Rome"}}
</tool_call>)"))
        << all;
    EXPECT_TRUE(has(all,
                    "<|im_start|>user\n<tool_response>\nsunny\n</tool_response>\n"
                    "<tool_response>\ndry\n</tool_response><|im_end|>"))
        << all;
    EXPECT_TRUE(all.starts_with("<|im_start|>system\nBe brief")) << all;
  }
}

TEST_F(Agents, SystemMessagesBecomeTheUsersWhereTheTemplateRefusesThem) {
  options_.chat_template = ChatTemplate::parse(
      "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}"
      "{% endif %}[{{ m.role }}:{{ m.content }}]{% endfor %}",
      "strict");
  const Request request = read(read_chat_completion, R"({"messages": [
    {"role": "system", "content": "A"}, {"role": "developer", "content": "B"},
    {"role": "user", "content": "C"}, {"role": "assistant", "content": "D"},
    {"role": "system", "content": "E"}, {"role": "user", "content": "F"}]})");
  EXPECT_EQ(request.prompt.chat.text, "[user:A\n\nB\n\nC][assistant:D][user:E\n\nF]");
  ASSERT_EQ(request.warnings.size(), 1u);
  options_.chat_template = ChatTemplate::parse(
      "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
      "{{ raise_exception('late') }}{% endif %}[{{ m.role }}:{{ m.content }}]{% endfor %}",
      "first only");
  EXPECT_EQ(read(read_chat_completion, R"({"messages": [{"role": "system", "content": "A"},
    {"role": "system", "content": "B"}, {"role": "user", "content": "C"},
    {"role": "assistant", "content": "D"}, {"role": "system", "content": "E"}]})")
                .prompt.chat.text,
            "[system:A\n\nB][user:C][assistant:D][user:E]");
}

TEST_F(Agents, AnAnswerThatHasBegunGoesOn) {
  const std::string begun = R"({"messages": [{"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello, my"}])";
  const std::string text = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello, my";
  EXPECT_EQ(read(read_chat_completion, begun + "}").prompt.chat.text, text);
  EXPECT_EQ(read(read_messages, begun + R"(, "max_tokens": 5})").prompt.chat.text, text);
  EXPECT_EQ(read(read_response, R"({"input": [{"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello, my"}]})")
                .prompt.chat.text,
            text);
  EXPECT_EQ(read(read_chat_completion, begun + R"(, "continue_final_message": true,
    "add_generation_prompt": false})")
                .prompt.chat.text,
            text);
  EXPECT_EQ(
      read(read_chat_completion, begun + R"(, "continue_final_message": false})").prompt.chat.text,
      text + "<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_TRUE(has(error(read_chat_completion, R"({"messages": [{"role": "user", "content": "x"},
    {"role": "assistant", "tool_calls": [{"id": "a", "type": "function",
     "function": {"name": "get", "arguments": "{}"}}]}]})"),
                  "messages| 'messages': the last one is the assistant's and calls tools"));
  options_.chat_template =
      ChatTemplate::parse("{{ messages[0].content }}", "the user's first message");
  EXPECT_TRUE(has(error(read_chat_completion, begun + "}"), "does not show an answer"));
}

TEST_F(Agents, CallsThatMustBeMadeEnd) {
  const std::string one =
      kTool + R"(, "tool_choice": {"type": "function", "function": {"name": "get"}})";
  const Request request = chat(one);
  ASSERT_TRUE(request.make_watch);
  EXPECT_FALSE(accepts(*request.grammar, kCall + "\n" + kCall));
  EXPECT_TRUE(
      accepts(*chat(one + R"(, "parallel_tool_calls": true)").grammar, kCall + "\n" + kCall));
  EXPECT_TRUE(read(read_messages, R"({"max_tokens": 7, "messages":
    [{"role": "user", "content": "x"}], "tools": [{"name": "get", "input_schema": {}}],
    "tool_choice": {"type": "tool", "name": "get"}})")
                  .make_watch);
}

TEST_F(Agents, ToolsAndAFormatMayComeTogether) {
  const std::string format =
      R"(, "response_format": {"type": "json_schema", "schema": {"type": "object",
          "properties": {"days": {"type": "integer"}}, "required": ["days"]}})";
  const Request either = chat(kTool + format);
  EXPECT_TRUE(accepts(*either.grammar, R"({"days":3})"));
  EXPECT_TRUE(accepts(*either.grammar, kCall));
  EXPECT_FALSE(accepts(*either.grammar, "text"));
  EXPECT_TRUE(either.warnings.empty());
  const Request call = chat(kTool + format + R"(, "tool_choice": "required")");
  EXPECT_FALSE(accepts(*call.grammar, R"({"days":3})"));
  EXPECT_TRUE(accepts(*call.grammar, kCall));
  ASSERT_EQ(call.warnings.size(), 1u);
  EXPECT_TRUE(has(call.warnings[0], "a call must be made"));
}

// One field that a grammar can't express costs nothing but itself.
TEST_F(Agents, SchemasOfManyToolsAreRelaxed) {
  Json tools = Json::array();
  for (int i = 0; i < 24; ++i) {
    tools.push_back({{"type", "function"},
                     {"function",
                      {{"name", "t" + std::to_string(i)},
                       {"parameters", Json::parse(R"({"type": "object", "properties": {
                         "url": {"type": "string", "format": "uri", "minLength": 1,
                                 "maxLength": 2083},
                         "tags": {"type": "array", "uniqueItems": true}}})")}}}});
  }
  const std::string body = "\"tools\": " + tools.dump() + R"(, "tool_choice": "required")";
  const Request request = chat(body);
  ASSERT_NE(request.grammar, nullptr);
  ASSERT_EQ(request.warnings.size(), 24u);
  EXPECT_EQ(request.warnings[3],
            "tool t3: not part of the grammar: uniqueItems (#/properties/tags)");
  EXPECT_TRUE(accepts(*request.grammar,
                      "<tool_call>\n{\"name\": \"t7\", \"arguments\": {\"url\":\"x\"}}\n"
                      "</tool_call>"));
  const Request schema = chat(R"("response_format": {"type": "json_schema", "json_schema":
    {"name": "n", "schema": {"type": "array", "uniqueItems": true}}})");
  EXPECT_EQ(schema.warnings,
            std::vector<std::string>{"schema: not part of the grammar: uniqueItems (#)"});
}

TEST_F(Agents, AllowedToolsAreTheOnlyOnes) {
  const std::string tools = R"("tools": [{"type": "function", "function": {"name": "a"}},
    {"type": "function", "function": {"name": "b"}}], "tool_choice": {"type": "allowed_tools",
    "allowed_tools": {"mode": "required", "tools": [{"type": "function",
    "function": {"name": "b"}}]}})";
  const Request request = chat(tools);
  EXPECT_TRUE(
      accepts(*request.grammar, "<tool_call>\n{\"name\": \"b\", \"arguments\": {}}\n</tool_call>"));
  EXPECT_FALSE(
      accepts(*request.grammar, "<tool_call>\n{\"name\": \"a\", \"arguments\": {}}\n</tool_call>"));
  EXPECT_FALSE(has(request.prompt.chat.text, "\"name\": \"a\"")) << request.prompt.chat.text;
}

TEST_F(Agents, FunctionsAreAskedForAsTools) {
  const std::pair<const char*, const char*> kOlder[] = {
      {R"({"messages": [{"role": "user", "content": "x"}], "functions": [{"name": "get"}]})",
       "'functions': functions are given as 'tools'"},
      {R"({"messages": [{"role": "user", "content": "x"}], "function_call": {"name": "get"}})",
       "'function_call': 'tool_choice' says which"},
      {R"({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": null,
        "function_call": {"name": "get", "arguments": "{}"}}]})",
       "'messages[1].function_call': calls are in 'tool_calls'"},
  };
  for (const auto& [body, expected] : kOlder) {
    try {
      (void)read(read_chat_completion, body);
      ADD_FAILURE() << body;
    } catch (const ApiError& e) {
      EXPECT_TRUE(has(e.what(), expected)) << e.what();
    }
  }
}

TEST_F(Agents, OfClaudeCodeAreUnderstood) {
  const Request request = read(read_messages, R"({"model": "claude-opus", "max_tokens": 7,
    "system": [{"type": "text", "text": "x-anthropic-billing-header: cc=1; cch=5f3a;"},
               {"type": "text", "text": "Be brief", "cache_control": {"type": "ephemeral"}}],
    "messages": [{"role": "system", "content": "First"},
      {"role": "user", "content": [{"type": "document", "title": "Log", "source":
        {"type": "text", "media_type": "text/plain", "data": "line"}},
       {"type": "search_result", "source": "https://a", "title": "T",
        "content": [{"type": "text", "text": "found"}]},
       {"type": "text", "text": "Why?"}]},
      {"role": "assistant", "content": "Because"},
      {"role": "system", "content": [{"type": "text", "text": "Later"}]},
      {"role": "user", "content": "And?"}],
    "tools": [{"type": "web_search_20250305", "name": "web_search"}],
    "thinking": {"type": "adaptive"},
    "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}})");
  EXPECT_EQ(request.prompt.chat.text,
            "<|im_start|>system\nBe brief\n\nFirst<|im_end|>\n<|im_start|>user\n"
            "<document title=\"Log\">\nline\n</document>\n\n"
            "<search_result title=\"T\" source=\"https://a\">\nfound\n</search_result>\n\nWhy?"
            "<|im_end|>\n<|im_start|>assistant\nBecause<|im_end|>\n<|im_start|>system\nLater"
            "<|im_end|>\n<|im_start|>user\nAnd?<|im_end|>\n<|im_start|>assistant\n");
  ASSERT_EQ(request.warnings.size(), 2u);
  EXPECT_TRUE(has(request.warnings[0], "clear_tool_uses_20250919"));
  EXPECT_TRUE(has(request.warnings[1], "web_search_20250305"));
  const std::string pdf = error(read_messages, R"({"max_tokens": 7, "messages": [{"role": "user",
    "content": [{"type": "document", "source": {"type": "base64",
    "media_type": "application/pdf", "data": "JVBE"}}]}]})");
  EXPECT_TRUE(has(pdf, "documents of \"application/pdf\" can't be read here")) << pdf;
}

// Accounted as stored is what comes up to the last cache_control.
TEST_F(Agents, CacheControlIsAccounted) {
  const auto usage = [&](const std::string& system, const std::string& question) {
    Exchange message = exchange(read_messages, R"({"max_tokens": 5, "system": [{"type": "text",
      "text": "Be brief")" + system + R"(}], "messages": [{"role": "user", "content": [
      {"type": "text", "text": "Hi there")" + question +
                                                   R"(}]}]})");
    RequestUpdates updates;
    PromptRead read;
    read.n_tokens = 100;
    read.n_reused = 40;
    read.n_stored = 60;
    read.kv.policy = "snapkv";
    updates.push(read);
    updates.push(AnswerEnd{0, FinishReason::stop, "", 3, 1.5});
    while (!message.answers->complete()) {
      (void)message.answers->take(*updates.next(std::chrono::milliseconds(0)));
    }
    return message.answers->plain()["usage"];
  };
  const std::string point = R"(, "cache_control": {"type": "ephemeral"})";
  const int64_t n_after = std::ssize(engine_.model().tokenize("Hi there\n", false));
  Json none = usage("", ""), first = usage(point, ""), last = usage(point, point);
  EXPECT_EQ(none["input_tokens"], 60);
  EXPECT_EQ(none["cache_creation_input_tokens"], 0);
  EXPECT_EQ(none["cache_read_input_tokens"], 40);
  EXPECT_EQ(first["input_tokens"], n_after);
  EXPECT_EQ(first["cache_creation_input_tokens"], 60 - n_after);
  EXPECT_EQ(last["input_tokens"], 0);
  EXPECT_EQ(last["cache_creation_input_tokens"], 60);
}

const char* const kCodexTools = R"("tools": [
  {"type": "namespace", "name": "mcp__files", "tools": [
    {"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}}]},
  {"type": "web_search"},
  {"type": "custom", "name": "apply_patch", "description": "Edits",
   "format": {"type": "grammar", "syntax": "lark", "definition": "start: /x/"}}])";

TEST_F(Agents, OfCodexAreUnderstood) {
  const std::string body = R"({"instructions": "Be brief", "input": [
    {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Rules"}]},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go"}]},
    {"type": "web_search_call", "id": "w", "status": "completed"},
    {"type": "function_call", "call_id": "c1", "namespace": "mcp__files", "name": "read",
     "arguments": ""},
    {"type": "function_call_output", "call_id": "c1", "output": "text"},
    {"type": "custom_tool_call", "call_id": "c2", "name": "apply_patch", "input": "*** Begin"},
    {"type": "custom_tool_call_output", "call_id": "c2", "output": "done"}], )" +
                           std::string(kCodexTools);
  const Request request = read(read_response, body + "}");
  const std::string& text = request.prompt.chat.text;
  EXPECT_TRUE(has(text, R"("name": "mcp__files__read", "arguments": {}})")) << text;
  EXPECT_TRUE(has(text, R"("name": "apply_patch", "arguments": {"input": "*** Begin"}})")) << text;
  EXPECT_TRUE(has(text, "The input must be a text of this grammar (lark):\\nstart: /x/")) << text;
  EXPECT_TRUE(has(text, "<|im_start|>system\nRules<|im_end|>")) << text;
  EXPECT_EQ(
      request.warnings,
      std::vector<std::string>{"tools[1].type: web_search: this server has no tools of its own"});
  EXPECT_EQ(count_response_tokens(parse_body(body + "}"), ApiContext{engine_, options_}),
            std::ssize(request.prompt.tokens));
  EXPECT_TRUE(has(error(read_response, R"({"input": "x", "tools": [{"type": "robot"}]})"),
                  "tools[0].type| 'tools[0].type' must be function, custom or namespace"));
}

TEST_F(Agents, GetTheirOwnNamesOfToolsBack) {
  Exchange response = exchange(
      read_response, R"({"input": "x", "stream": true, )" + std::string(kCodexTools) + "}");
  RequestUpdates updates;
  push_answer(updates,
              {"<tool_call>\n{\"name\": \"mcp__files__read\", \"arguments\": {}}\n</tool_call>\n"
               "<tool_call>\n{\"name\": \"apply_patch\", \"arguments\": {\"input\": \"a\\nb\"}}\n"
               "</tool_call>"},
              5);
  std::string events;
  while (!response.answers->complete()) {
    events += response.answers->take(*updates.next(std::chrono::milliseconds(0)));
  }
  EXPECT_TRUE(has(events, R"("name":"read","namespace":"mcp__files")")) << events;
  const size_t delta = events.find(R"(event: response.custom_tool_call_input.delta)"),
               done = events.find(R"(event: response.custom_tool_call_input.done)");
  EXPECT_LT(delta, done);
  EXPECT_NE(done, std::string::npos);
  EXPECT_TRUE(has(events.substr(done), R"("input":"a\nb")"));
  const Json plain = response.answers->plain();
  ASSERT_EQ(plain["output"].size(), 2u);
  EXPECT_EQ(plain["output"][1]["type"], "custom_tool_call");
  EXPECT_EQ(plain["output"][1]["name"], "apply_patch");
  EXPECT_EQ(plain["output"][1]["input"], "a\nb");
  EXPECT_EQ(plain["usage"]["input_tokens_details"],
            Json::parse(R"({"cached_tokens": 4, "cache_write_tokens": 0})"));
}

const char* const kCustomTool = R"("tools": [{"type": "custom", "custom": {"name": "run",
  "description": "Runs code", "format": {"type": "grammar",
    "grammar": {"syntax": "lark", "definition": "start: /x/"}}}}])";

TEST_F(Agents, CustomToolsOfChatCompletionsAreFunctionsToTheModel) {
  const std::string text = chat(kCustomTool).prompt.chat.text;
  EXPECT_TRUE(has(text, "Runs code\\n\\nThe input must be a text of this grammar (lark):")) << text;
  const Request chosen = chat(kCustomTool + std::string(R"(, "tool_choice": {"type": "custom",
           "custom": {"name": "run"}})"));
  EXPECT_TRUE(accepts(*chosen.grammar,
                      "<tool_call>\n{\"name\": \"run\", \"arguments\": {\"input\":\"x\"}}\n"
                      "</tool_call>"));
  const Request request = read(read_chat_completion, R"({"messages": [
    {"role": "user", "content": "x"},
    {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom",
      "custom": {"name": "run", "input": "print 1"}}]},
    {"role": "tool", "tool_call_id": "c", "content": "1"}], )" +
                                                         std::string(kCustomTool) + "}");
  EXPECT_TRUE(
      has(request.prompt.chat.text, R"({"name": "run", "arguments": {"input": "print 1"}})"))
      << request.prompt.chat.text;
  const std::string begin = R"({"messages": [{"role": "user", "content": "x"}], )";
  EXPECT_TRUE(has(error(read_chat_completion, begin + R"("tools": [{"type": "robot"}]})"),
                  "tools[0].type| 'tools[0].type' must be function or custom"));
  EXPECT_TRUE(has(error(read_chat_completion, begin + R"("tools": [{"type": "custom"}]})"),
                  "tools[0].custom"));
  EXPECT_TRUE(has(error(read_ollama_chat, begin + kCustomTool + "}"), "Ollama has functions only"));
}

TEST_F(Agents, CallsOfCustomToolsHoldTheirText) {
  Exchange chat = exchange(read_chat_completion, R"({"messages": [{"role": "user",
    "content": "x"}], "stream": true, )" + std::string(kCustomTool) +
                                                     "}");
  RequestUpdates updates;
  push_answer(updates, {"<tool_call>\n{\"name\": \"run\", \"arguments\": {\"input\": "
                        "\"a\\nb\"}}\n</tool_call>"});
  std::string events;
  while (!chat.answers->complete()) {
    events += chat.answers->take(*updates.next(std::chrono::milliseconds(0)));
  }
  const size_t begun = events.find(R"("custom":{"name":"run","input":""})"),
               input = events.find(R"("custom":{"input":"a\nb"})"),
               end = events.find(R"("finish_reason":"tool_calls")");
  EXPECT_LT(begun, input) << events;
  EXPECT_LT(input, end) << events;
  EXPECT_NE(end, std::string::npos) << events;
  EXPECT_FALSE(has(events, R"("function":)")) << events;
  const Json call = chat.answers->plain()["choices"][0]["message"]["tool_calls"][0];
  EXPECT_EQ(call["type"], "custom");
  EXPECT_EQ(call["custom"], Json::parse(R"({"name": "run", "input": "a\nb"})"));
}

TEST_F(Agents, ReasoningTokensAreCounted) {
  Exchange exchanged =
      exchange(read_chat_completion, R"({"messages": [{"role": "user", "content": "x"}]})");
  RequestUpdates updates;
  updates.push(PromptRead{});
  for (const char* text : {"<think>", "why", " not", "</think>", "Yes"}) {
    updates.push(AnswerPart{.choice = 0, .text = text, .tokens = {}, .n_tokens = 1});
  }
  updates.push(AnswerEnd{0, FinishReason::stop, "", 5, 1.5});
  while (!exchanged.answers->complete()) {
    (void)exchanged.answers->take(*updates.next(std::chrono::milliseconds(0)));
  }
  EXPECT_EQ(exchanged.answers->plain()["usage"]["completion_tokens_details"]["reasoning_tokens"],
            3);
}

TEST_F(Agents, HintsThatChangeNothingAreAccepted) {
  EXPECT_EQ(chat("").prompt.tokens, chat(R"("verbosity": "low", "stop": ["", ""],
    "add_generation_prompt": true)")
                                        .prompt.tokens);
  EXPECT_TRUE(chat(R"("stop": [""])").stops.empty());
  EXPECT_EQ(error(read_response, R"({"input": "x", "truncation": "auto",
    "text": {"verbosity": "high"}})"),
            "accepted");
  EXPECT_EQ(read(read_chat_completion, R"({"messages": [{"role": "user", "content": null}]})")
                .prompt.chat.text,
            "<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(read(read_completion, R"({"prompt": "x"})").max_tokens, 1024);
  EXPECT_EQ(read(read_completion, R"({"prompt": "x", "max_tokens": null})").max_tokens, 1024);
}

}  // namespace
}  // namespace snapkv::test
