// SPDX-License-Identifier: MIT
// Ollama's API: requests, answers in lines of JSON, and what is said of the model.
#include "tests/server/http_support.h"

namespace snapkv::test {
namespace {

std::vector<Json> lines(const std::string& text) {
  std::vector<Json> all;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    all.push_back(Json::parse(text.substr(at, end - at)));
    at = end + 1;
  }
  return all;
}

TEST_F(Http, OllamaChatsInLines) {
  start();
  const auto stream =
      post("/api/chat", R"({"model": "m", "messages": [{"role": "user", "content": "x"}],
    "options": {"num_predict": 7, "temperature": 0.5, "stop": ["END"], "num_ctx": 4096},
    "think": false})");
  ASSERT_TRUE(stream);
  EXPECT_EQ(stream->get_header_value("Content-Type"), "application/x-ndjson");
  const std::vector<Json> all = lines(stream->body);
  ASSERT_EQ(all.size(), 2u) << stream->body;
  EXPECT_EQ(all[0]["model"], "m");
  EXPECT_EQ(all[0]["message"], Json::parse(R"({"role": "assistant", "content": "Hello"})"));
  EXPECT_EQ(all[0]["done"], false);
  EXPECT_EQ(all[1]["done"], true);
  EXPECT_EQ(all[1]["done_reason"], "stop");
  EXPECT_EQ(all[1]["prompt_eval_count"], 10);
  EXPECT_EQ(all[1]["eval_count"], 3);
  EXPECT_EQ(all[1]["eval_duration"], 1'500'000'000);
  const Request request = engine_.requests().back();
  EXPECT_EQ(request.max_tokens, 7);
  EXPECT_EQ(request.sampler.temperature, 0.5);
  EXPECT_EQ(request.stops, std::vector<std::string>{"END"});
}

TEST_F(Http, OllamaCallsToolsAndObeysSchemas) {
  start();
  engine_.set_script([](const Request&, RequestUpdates& updates) {
    push_answer(updates,
                {"<tool_call>\n{\"name\": \"get\", \"arguments\": {\"a\": 1}}\n</tool_call>"});
  });
  const std::string body = R"({"model": "m", "messages": [{"role": "user", "content": "x"},
    {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "get",
     "arguments": {"a": 2}}}]}, {"role": "tool", "tool_name": "get", "content": "3"}],
    "tools": [{"type": "function", "function": {"name": "get", "parameters": {}}}])";
  const auto plain = post("/api/chat", body + R"(, "stream": false})");
  ASSERT_TRUE(plain);
  ASSERT_EQ(plain->status, 200) << plain->body;
  const Json function = Json::parse(plain->body)["message"]["tool_calls"][0]["function"];
  EXPECT_EQ(function["name"], "get");
  EXPECT_EQ(function["arguments"], Json::parse(R"({"a": 1})"));
  const auto stream = post("/api/chat", body + "}");
  ASSERT_TRUE(stream);
  EXPECT_TRUE(lines(stream->body).at(0)["message"].contains("tool_calls")) << stream->body;
  const auto schema = post("/api/generate", R"({"model": "m", "prompt": "x", "stream": false,
    "system": "Be brief", "format": {"type": "integer"}})");
  ASSERT_TRUE(schema);
  EXPECT_TRUE(Json::parse(schema->body).contains("response")) << schema->body;
  const Request request = engine_.requests().back();
  ASSERT_NE(request.grammar, nullptr);
  EXPECT_EQ(request.prompt.chat.text,
            "<|im_start|>system\nBe brief<|im_end|>\n<|im_start|>user\nx<|im_end|>\n"
            "<|im_start|>assistant\n");
  (void)post("/api/generate", R"({"prompt": "x", "raw": true})");
  EXPECT_EQ(engine_.requests().back().prompt.chat.text, "x");
}

TEST_F(Http, OllamaClientsLearnOfTheModel) {
  start();
  EXPECT_TRUE(Json::parse(client().Get("/api/version")->body)["version"].is_string());
  const Json tags = Json::parse(client().Get("/api/tags")->body);
  EXPECT_EQ(tags["models"][0]["name"], "needle");
  EXPECT_EQ(tags["models"][0]["digest"].get<std::string>().size(), 64u);
  EXPECT_EQ(Json::parse(client().Get("/api/ps")->body)["models"][0]["model"], "needle");
  const auto show = post("/api/show", R"({"model": "needle"})");
  ASSERT_TRUE(show);
  const Json json = Json::parse(show->body);
  const auto arch = json["model_info"]["general.architecture"].get<std::string>();
  EXPECT_EQ(json["model_info"][arch + ".context_length"], engine_.model().info().n_ctx_train);
  EXPECT_EQ(json["capabilities"], Json::parse(R"(["completion", "tools"])"));
  const auto load = post("/api/chat", R"({"model": "needle", "keep_alive": 0})");
  ASSERT_TRUE(load);
  EXPECT_EQ(Json::parse(load->body)["done_reason"], "unload");
  EXPECT_TRUE(engine_.requests().empty());
}

TEST_F(Http, OllamaErrorsAreATextAndWhatIsMissingIsNamed) {
  start();
  const auto wrong = post("/api/chat", R"({"messages": [{"role": "user", "content": "x",
    "images": ["aGk="]}]})");
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->status, 400);
  EXPECT_TRUE(Json::parse(wrong->body)["error"].is_string()) << wrong->body;
  for (const char* path :
       {"/v1/embeddings", "/api/embed", "/rerank", "/v1/rerank", "/infill", "/api/pull"}) {
    const auto missing = post(path, "{}");
    ASSERT_TRUE(missing);
    EXPECT_EQ(missing->status, 501) << path;
  }
}

// Headers and words that clients look for.
TEST_F(Http, RequestsHaveIdsAndAnswersWarnings) {
  api_.tool_template = ChatTemplate::built_in("chatml");
  start();
  const auto answer = post("/v1/chat/completions", R"({"messages": [{"role": "user",
    "content": "x"}], "tools": [{"type": "function", "function": {"name": "get"}}]})");
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->get_header_value("x-request-id").starts_with("req_"));
  EXPECT_EQ(answer->get_header_value("x-request-id"), answer->get_header_value("request-id"));
  EXPECT_NE(answer->get_header_value("x-snapkv-warning").find("generic format"), std::string::npos);
  EXPECT_FALSE(client().Get("/v1/models")->has_header("x-snapkv-warning"));
  engine_.set_script([](const Request&, RequestUpdates&) {
    Refused refused(Refused::Kind::context_exceeded, "This model's maximum context length is ...");
    refused.n_prompt = 9031;
    refused.n_ctx = 8192;
    throw refused;
  });
  const std::string body = R"({"max_tokens": 5, "messages": [{"role": "user", "content": "x"}]})";
  const auto openai = post("/v1/chat/completions", body), anthropic = post("/v1/messages", body);
  ASSERT_TRUE(openai && anthropic);
  EXPECT_EQ(Json::parse(openai->body)["error"]["code"], "context_length_exceeded");
  EXPECT_EQ(Json::parse(anthropic->body)["error"]["message"],
            "prompt is too long: 9031 tokens > 8192 maximum");
}

TEST_F(Http, ModelsHaveTheMembersOfBothApis) {
  start();
  const Json list = Json::parse(client().Get("/v1/models")->body);
  EXPECT_EQ(list["data"][0]["type"], "model");
  EXPECT_EQ(list["data"][0]["display_name"], "needle");
  EXPECT_EQ(list["data"][0]["created_at"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(list["has_more"], false);
  EXPECT_EQ(Json::parse(client().Get("/v1/models/claude-opus-4-1")->body)["id"], "claude-opus-4-1");
  const auto count = post("/v1/responses/input_tokens", R"({"input": "Hi"})");
  ASSERT_TRUE(count);
  EXPECT_GT(Json::parse(count->body)["input_tokens"], 3) << count->body;
}

}  // namespace
}  // namespace snapkv::test
