// SPDX-License-Identifier: MIT
// Sources of answers in the APIs: which texts of a request they are looked for in, and how clients
// get them.
#include <filesystem>
#include <string>
#include <utility>

#include "chat/document.h"
#include "snapkv/prefill.h"
#include "tests/server/http_support.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace {

void answer_with_source(const Request& request, RequestUpdates& updates) {
  PromptRead read;
  read.n_tokens = 10;
  read.kv.policy = "snapkv";
  updates.push(std::move(read));
  updates.push(AnswerPart{.choice = 0, .text = "It is 48213.", .tokens = {}, .n_tokens = 5});
  AnswerEnd end;
  end.n_generated = 5;
  if (!request.citable.empty()) {
    end.sources.push_back({request.citable[0].index, 4, 22, 0.5, "The number is 48213."});
  }
  updates.push(std::move(end));
}

TEST_F(Http, ChatsNameTheirSources) {
  engine_.set_script(answer_with_source);
  start();
  const std::string body = R"({"kv_report": "sources", "messages": [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "First. The number is 48213.\n\nSecond.\n\nWhat is the number?\n"}]})";
  const Json kv = Json::parse(post("/v1/chat/completions", body)->body)["kv"];
  ASSERT_EQ(kv["sources"].size(), 1U) << kv;
  EXPECT_EQ(kv["sources"][0], Json::parse(R"({"message": 1, "begin": 4, "end": 22, "attention": 0.5,
                            "text": "The number is 48213."})"));
  const Request request = engine_.requests().back();
  ASSERT_EQ(request.citable.size(), 1U) << "not the system message";
  EXPECT_EQ(request.citable[0].text, "First. The number is 48213.\n\nSecond.")
      << "without the question";

  const std::string plain = R"({"messages": [{"role": "user", "content": "A.\n\nB?"}]})";
  EXPECT_FALSE(Json::parse(post("/v1/chat/completions", plain)->body)["kv"].contains("sources"));
  EXPECT_TRUE(engine_.requests().back().citable.empty());
}

/// Writes the needle model's snapshot of a text, with every row or with those that were chosen.
void write_snapshot(const std::string& path, const std::string& text, bool keeps_all) {
  const auto model = load_model("needle");
  chat::DocumentForm form;
  form.template_source = ChatTemplate::built_in("chatml").source();
  form.template_name = "chatml";
  SessionOptions options;
  options.kv = {.name = "knorm"};
  options.kv.budget = 40;
  Session session(model, options);
  PrefillPrompt prompt = {.sessions = {&session},
                          .tokens = model->tokenize(chat::document_part(form, text))};
  prompt.makes_prefix = keeps_all;
  Prefill prefill(std::move(prompt));
  while (!prefill.step()) {
  }
  const std::string notes = chat::document_notes(form, "", "");
  if (keeps_all) {
    prefill.take_prefix(0)->save(path, DType::f16, notes);
  } else {
    session.save(path, notes);
  }
}

TEST_F(Http, AnswersAboutASnapshotNameTheirSources) {
  const std::string text = "The sky is clear. The number is 48213.";
  api_.snapshot_dir = testing::TempDir() + "/cited";
  std::filesystem::remove_all(api_.snapshot_dir);
  std::filesystem::create_directory(api_.snapshot_dir);
  write_snapshot(api_.snapshot_dir + "/rows.kv", text, true);
  write_snapshot(api_.snapshot_dir + "/chosen.kv", text, false);
  engine_.set_script([](const Request& request, RequestUpdates& updates) {
    PromptRead read;
    read.kv.policy = "snapkv";
    updates.push(std::move(read));
    AnswerEnd end;
    end.sources.push_back({request.citable.back().index, 18, 38, 0.5, "The number is 48213."});
    updates.push(std::move(end));
  });
  start();
  const std::pair<const char*, const char*> kRequests[] = {
      {"/v1/chat/completions", R"("messages": [{"role": "user", "content": "Which number?"}]})"},
      {"/v1/completions", R"("prompt": "Which number?"})"}};
  for (const auto& [endpoint, rest] : kRequests) {
    const auto body = [fields = rest](const char* name) {
      return std::string(R"({"kv_report": "sources", "kv": {"snapshot": ")") + name + "\"}, " +
             fields;
    };
    const Json kv = Json::parse(post(endpoint, body("rows"))->body)["kv"];
    ASSERT_EQ(kv["sources"].size(), 1U) << kv;
    EXPECT_EQ(kv["sources"][0],
              Json::parse(R"({"snapshot": "rows", "begin": 18, "end": 38, "attention": 0.5,
                              "text": "The number is 48213."})"));
    EXPECT_EQ(engine_.requests().back().citable.back().text, text);
    const auto refused = post(endpoint, body("chosen"));
    EXPECT_EQ(refused->status, 400);
    EXPECT_NE(refused->body.find("keep_full"), std::string::npos) << refused->body;
  }
}

TEST_F(Http, CompletionsNameTheirSources) {
  engine_.set_script(answer_with_source);
  start();
  const std::string body =
      R"({"kv_report": "sources", "prompt": "The number is 48213.\n\nWhich?"})";
  EXPECT_EQ(Json::parse(post("/v1/completions", body)->body)["kv"]["sources"].size(), 1U);
  EXPECT_EQ(engine_.requests().back().citable[0].text, "The number is 48213.");
  const auto several = post("/v1/completions", R"({"kv_report": "sources", "prompt": ["a", "b"]})");
  EXPECT_EQ(several->status, 400);
  EXPECT_NE(several->body.find("one prompt only"), std::string::npos) << several->body;
}

TEST_F(Http, DocumentBlocksAreCited) {
  engine_.set_script(answer_with_source);
  start();
  const auto body = [](const char* enabled, const char* stream) {
    return std::string(R"({"max_tokens": 9, "stream": )") + stream +
           R"(, "messages": [{"role": "user", "content": [
      {"type": "document", "source": {"type": "text", "data": "Of the first."}},
      {"type": "document", "title": "Rome", "citations": {"enabled": )" +
           enabled + R"(}, "source": {"type": "text", "data": "The number is 48213."}},
      {"type": "text", "text": "Which number?"}]}]})";
  };
  const Json text = Json::parse(post("/v1/messages", body("true", "false"))->body)["content"][0];
  const Json citation = Json::parse(R"({"type": "char_location", "cited_text":
    "The number is 48213.", "document_index": 1, "document_title": "Rome", "start_char_index": 4,
    "end_char_index": 22, "file_id": null})");
  EXPECT_EQ(text["citations"], Json::array({citation})) << text;
  ASSERT_EQ(engine_.requests().back().citable.size(), 1U);
  EXPECT_EQ(engine_.requests().back().citable[0].text, "The number is 48213.");

  const std::string events = post("/v1/messages", body("true", "true"))->body;
  const size_t at = events.find("citations_delta");
  ASSERT_NE(at, std::string::npos) << events;
  EXPECT_GT(at, events.find("text_delta"));
  EXPECT_LT(at, events.find("content_block_stop"));

  const Json plain = Json::parse(post("/v1/messages", body("false", "false"))->body)["content"][0];
  EXPECT_FALSE(plain.contains("citations"));
  EXPECT_TRUE(engine_.requests().back().citable.empty());
}

}  // namespace
}  // namespace snapkv::test
