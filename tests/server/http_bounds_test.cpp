// SPDX-License-Identifier: MIT
// What one client can take from the others: connections, time and memory; and how short the answers
// to its mistakes are.
#include <atomic>
#include <vector>

#include "tests/server/http_support.h"

namespace snapkv::test {
namespace {

class HttpBounds : public Http {
 protected:
  ~HttpBounds() override {
    for (const int socket : sockets_) close(socket);
  }
  /// Opens connections that send the beginning of a body, and no more.
  void hold(int n) {
    for (int i = 0; i < n; ++i) sockets_.push_back(connect_and_send(kHalf));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  int connect_from(const char* address) const {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in from = {}, to = {};
    from.sin_family = to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port_));
    inet_pton(AF_INET, address, &from.sin_addr);
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    EXPECT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&from), sizeof(from)), 0);
    EXPECT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    return socket;
  }

  static constexpr const char* kHalf =
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{";
  std::vector<int> sockets_;
};

TEST_F(HttpBounds, SaysHowItIsWhileEveryConnectionIsTaken) {
  http_options_.most_connections = http_options_.most_of_address = 8;
  start();
  hold(400);
  for (const char* path : {"/health", "/v1/health", "/metrics", "/health?full=1"}) {
    const Timer timer;
    const auto answer = client().Get(path);
    ASSERT_TRUE(answer) << path;
    EXPECT_EQ(answer->status, 200) << path;
    EXPECT_LT(timer.seconds(), 5) << path;
  }
  const auto other = post("/tokenize", R"({"content": "x"})");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->status, 503);
  EXPECT_EQ(other->get_header_value("Retry-After"), "1");
  EXPECT_EQ(Json::parse(other->body)["error"]["code"], "too_many_connections");
}

TEST_F(HttpBounds, NeedsAKeyForMetricsHoweverFullItIs) {
  http_options_.most_connections = http_options_.most_of_address = 2;
  service_options_.api_keys = {"secret"};
  start();
  hold(4);
  EXPECT_EQ(client().Get("/metrics")->status, 401);
  EXPECT_EQ(client().Get("/health")->status, 200);
  EXPECT_EQ(client().Get("/metrics", {{"Authorization", "Bearer secret"}})->status, 200);
}

TEST_F(HttpBounds, ABodyMustComeAtALeastRate) {
  http_options_.connection.read_seconds = 0.5;
  http_options_.connection.body_rate = 1000;
  start();
  const int slow = connect_and_send(kHalf);
  std::atomic<bool> ended = false;
  std::thread drip([&] {  // no pause is as long as read_seconds
    while (!ended) {
      (void)!::send(slow, " ", 1, MSG_NOSIGNAL);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  const Timer timer;
  const std::string answer = receive(slow, "}}");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400")) << answer;
  EXPECT_NE(answer.find("incomplete_body"), answer.npos) << answer;
  EXPECT_LT(timer.seconds(), 10);
  ended = true;
  drip.join();
  close(slow);
}

TEST_F(HttpBounds, AnAddressHasAShareOfTheConnections) {
  http_options_.most_connections = 4;
  http_options_.most_of_address = 2;
  start();
  hold(4);
  EXPECT_EQ(post("/tokenize", R"({"content": "x"})")->status, 503);
  const int other = connect_from("127.0.0.2");
  const std::string text = request(R"({"prompt": "x"})");
  EXPECT_EQ(::send(other, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  EXPECT_TRUE(receive(other, "}").starts_with("HTTP/1.1 200"));
  close(other);
}

TEST_F(HttpBounds, BodiesWaitForMemory) {
  http_options_.body_memory = 16 << 20;
  http_options_.body_wait_seconds = 100;
  start();
  const size_t most = http_->most_body();
  EXPECT_LE(most, size_t{1} << 20);
  const std::string body = Json{{"content", std::string(most * 9 / 10, ' ')}}.dump();
  std::atomic<int> n_good = 0;
  std::atomic<size_t> most_used = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 12; ++i) {
    clients.emplace_back([&] {
      httplib::Client patient = client();
      patient.set_read_timeout(100);
      patient.set_write_timeout(100);
      const auto answer = patient.Post("/tokenize", body, "application/json");
      if (answer && answer->status == 200) ++n_good;
      most_used = std::max<size_t>(most_used, http_->bodies().used());
    });
  }
  for (std::thread& each : clients) each.join();
  EXPECT_EQ(n_good, 12);
  EXPECT_LE(most_used, http_options_.body_memory);
  EXPECT_TRUE(eventually([&] { return http_->bodies().used() == 0; }));
  EXPECT_EQ(post("/tokenize", Json{{"content", std::string(most, ' ')}}.dump())->status, 413);
  const std::vector<int> ids(most / 3, 1);
  const auto numbers = post("/detokenize", Json{{"tokens", ids}}.dump());
  EXPECT_EQ(numbers->status, 413) << "small in bytes, but not when it is parsed";
}

TEST_F(HttpBounds, ABodyThatWaitsTooLongIsRefused) {
  http_options_.body_memory = 16 << 20;
  http_options_.body_wait_seconds = 0.3;
  start();
  const size_t length = http_->most_body() * 8 / 10;
  const std::string header =
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(length) +
      "\r\n\r\n";
  for (int i = 0; i < 2; ++i) sockets_.push_back(connect_and_send(header));  // they take it all
  ASSERT_TRUE(eventually([&] { return http_->bodies().used() > length; }));
  const int third = connect_and_send(header);
  const std::string answer = receive(third, "}}");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503")) << answer;
  EXPECT_NE(answer.find("Retry-After: "), answer.npos) << answer;
  EXPECT_NE(answer.find("too_many_bodies"), answer.npos) << answer;
  close(third);
  EXPECT_EQ(post("/tokenize", R"({"content": "x"})")->status, 200) << "small ones have their part";
}

TEST_F(HttpBounds, AnAnswerThatIsComputedHoldsNoMoreThanTheBody) {
  http_options_.body_memory = 160 << 20;
  engine_.set_script([](const Request&, RequestUpdates& updates) { updates.push(PromptRead{}); });
  start();
  const std::string body = Json{{"prompt", std::string(1'000'000, ' ')}, {"stream", true}}.dump();
  const int stream = connect_and_send(request(body));
  ASSERT_TRUE(eventually([&] { return engine_.generations().size() == 1; }));
  EXPECT_TRUE(eventually([&] { return http_->bodies().used() == body.size(); }))
      << http_->bodies().used();
  engine_.generations().back()->push(AnswerEnd{});
  EXPECT_TRUE(eventually([&] { return http_->bodies().used() == 0; }));
  close(stream);
}

TEST_F(HttpBounds, MessagesDoNotRepeatARequest) {
  start();
  const std::string huge(200'000, 'x');
  const std::vector<std::pair<std::string, Json>> bad = {
      {"/v1/completions", {{"prompt", "x"}, {"kv", {{"policy", huge}}}}},
      {"/v1/completions", {{"prompt", "x"}, {"kv", {{"snapshot", huge}}}}},
      {"/v1/completions", {{"prompt", "x"}, {"grammar", huge}}},
      {"/v1/completions", {{"prompt", "x"}, {"json_schema", {{"type", huge}}}}},
      {"/v1/completions", {{"prompt", "x"}, {"json_schema", {{"pattern", "(" + huge}}}}},
      {"/v1/completions", {{"prompt", "x"}, {"response_format", {{"type", huge}}}}},
      {"/v1/completions", {{"prompt", huge}, {"max_tokens", huge}}},
      {"/v1/chat/completions", {{"messages", {{{"role", huge}, {"content", "x"}}}}}},
      {"/v1/chat/completions",
       {{"messages", {{{"role", "user"}, {"content", {{{"type", huge}}}}}}}}},
      {"/v1/chat/completions",
       {{"messages", {{{"role", "user"}, {"content", "x"}}}},
        {"tools", {{{"type", "function"}, {"function", {{"name", huge + " "}}}}}}}},
      {"/v1/chat/completions",
       {{"messages", {{{"role", "user"}, {"content", "x"}}}},
        {"tool_choice", {{"type", "function"}, {"function", {{"name", huge}}}}},
        {"tools", {{{"type", "function"}, {"function", {{"name", "f"}}}}}}}},
      {"/v1/messages", {{"max_tokens", 1}, {"messages", {{{"role", huge}, {"content", "x"}}}}}},
      {"/v1/responses", {{"input", {{{"type", huge}}}}}},
      {"/api/chat", {{"messages", {{{"role", huge}}}}}},
      {"/v1/kv/snapshots", {{"name", huge}, {"text", "x"}}}};
  for (const auto& [path, body] : bad) {
    const auto answer = post(path, body.dump());
    ASSERT_TRUE(answer) << path;
    EXPECT_LT(answer->body.size(), 4000u) << path << ": " << answer->body.substr(0, 300);
  }
  const auto broken = post("/v1/completions", "{\"prompt\": \"" + huge);
  EXPECT_EQ(broken->status, 400);
  EXPECT_LT(broken->body.size(), 4000u);
}

}  // namespace
}  // namespace snapkv::test
