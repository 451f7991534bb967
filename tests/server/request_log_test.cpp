// SPDX-License-Identifier: MIT
// The server's log: a line for each request, how far long prompts are read, and what was changed.
#include "server/request_log.h"

#include <gtest/gtest.h>

#include <mutex>

#include "tests/server/http_support.h"

namespace snapkv::test {
namespace {

class Log : public Http {
 protected:
  ~Log() override {  // no line comes after the members below are gone
    http_->close();
    thread_.join();
  }
  void start_with_log(bool verbose) {
    service_options_.log = {.write =
                                [this](const std::string& line) {
                                  const std::lock_guard lock(mutex_);
                                  lines_.push_back(line.substr(9));  // without the time of day
                                },
                            .verbose = verbose};
    start();
  }
  /// The lines, once there are so many.
  std::vector<std::string> lines(size_t n) {
    const auto all = [this] {
      const std::lock_guard lock(mutex_);
      return lines_;
    };
    EXPECT_TRUE(eventually([&] { return all().size() >= n; }));
    return all();
  }
  httplib::Result post_as(const std::string& client, const std::string& path,
                          const std::string& body) const {
    return this->client().Post(path, {{"User-Agent", client}}, body, "application/json");
  }

  std::mutex mutex_;
  std::vector<std::string> lines_;
};

const char* const kBody = R"({"messages": [{"role": "user", "content": "Hi"}], "user": "u")";

TEST_F(Log, HasALineForEachAnswer) {
  start_with_log(false);
  const std::string tokens = "tokens: 6 read, 4 reused, 3 written; 8 rows kept; ";
  ASSERT_TRUE(post_as("agent/1.2 (linux)", "/v1/chat/completions", std::string(kBody) + "}"));
  std::vector<std::string> all = lines(1);
  EXPECT_TRUE(all[0].starts_with("POST /v1/chat/completions (agent/1.2): " + tokens)) << all[0];
  EXPECT_TRUE(all[0].ends_with(" s; stop")) << all[0];
  ASSERT_TRUE(
      post_as("b", "/v1/chat/completions", std::string(kBody) + R"(, "stream": true})"));
  EXPECT_TRUE(lines(2)[1].starts_with("POST /v1/chat/completions (b): " + tokens)) << lines(2)[1];
}

TEST_F(Log, SaysWhyARequestIsRefused) {
  start_with_log(false);
  ASSERT_TRUE(post_as("a\xff b", "/v1/chat/completions", "{}"));
  EXPECT_TRUE(lines(1)[0].ends_with(": 400: 'messages' is missing")) << lines(1)[0];
  ASSERT_TRUE(this->client().Post("/api/chat", {{"User-Agent", "a"}, {"Accept-Encoding", "gzip"}},
                                  R"({"messages": 1})", "application/json"));
  EXPECT_TRUE(lines(2)[1].starts_with("POST /api/chat (a): 400: 'messages' must be an array"))
      << lines(2)[1];
  ASSERT_TRUE(client().Get("/v1/models", {{"User-Agent", ""}}));
  EXPECT_TRUE(lines(3)[2].starts_with("GET /v1/models")) << lines(3)[2];
  EXPECT_TRUE(lines(3)[2].ends_with(": 200")) << lines(3)[2];
}

TEST_F(Log, SaysMoreWhereItIsVerbose) {
  start_with_log(true);
  ASSERT_TRUE(post_as("a", "/v1/messages", R"({"max_tokens": 9, "system": [{"type": "text",
    "text": "x-anthropic-billing-header: 1\nBe kind."}], "messages": [{"role": "user",
    "content": "Hi"}], "metadata": {}, "model": "m"})"));
  const std::vector<std::string> all = lines(3);
  EXPECT_EQ(all[0],
            "POST /v1/messages (a): system: the line x-anthropic-billing-header is left out");
  EXPECT_EQ(all[1], "POST /v1/messages (a): ignored fields: metadata");
  ASSERT_TRUE(client().Get("/health"));
  EXPECT_TRUE(lines(4)[3].starts_with("GET /health")) << lines(4)[3];
}

TEST_F(Log, LeavesOutWhatWatchersAsk) {
  start_with_log(false);
  ASSERT_TRUE(client().Get("/health"));
  ASSERT_TRUE(client().Get("/metrics"));
  ASSERT_TRUE(post_as("a", "/v1/chat/completions", std::string(kBody) + "}"));
  EXPECT_EQ(lines(1).size(), 1u);
}

// The engine reports progress for the log, and only clients that asked for it get it.
TEST_F(Log, KeepsProgressFromClientsThatDidNotAsk) {
  start_with_log(false);
  engine_.set_script([](const Request& request, RequestUpdates& updates) {
    EXPECT_TRUE(request.reports_progress);
    updates.push(PromptProgress{.n_total = 10, .n_reused = 4, .fraction = 0.5, .seconds = 1});
    push_answer(updates, {"Hello"});
  });
  const auto plain = post("/v1/chat/completions", std::string(kBody) + R"(, "stream": true})");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->body.find("prompt_progress"), std::string::npos);
  const auto asked = post("/v1/chat/completions",
                          std::string(kBody) + R"(, "stream": true, "return_progress": true})");
  ASSERT_TRUE(asked);
  EXPECT_NE(asked->body.find("prompt_progress"), std::string::npos);
}

TEST(RequestLog, SaysHowFarAPromptIsRead) {
  std::string line;
  const RequestLog log({.write = [&](const std::string& text) { line = text; }});
  log.reading("POST /x", {.n_total = 12000, .n_reused = 2000, .fraction = 0.25, .seconds = 10});
  EXPECT_EQ(line.substr(9), "POST /x: reading 10000 tokens: 25 % after 10 s, about 30 s left");
  line.clear();
  const RequestLog quiet({.write = [&](const std::string& text) { line = text; },
                          .shows_progress = false});
  quiet.reading("POST /x", {.n_total = 12000, .fraction = 0.25, .seconds = 10});
  EXPECT_EQ(line, "");
}

}  // namespace
}  // namespace snapkv::test
