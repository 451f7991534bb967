// SPDX-License-Identifier: MIT
// The end of a connection: the server ends while clients are slow, or the client closes the
// connection or only its side of it.
#include <atomic>

#include "tests/server/http_support.h"

namespace snapkv::test {
namespace {

class HttpEnding : public Http {
 protected:
  void SetUp() override { http_options_.connection.ending_seconds = 0.3; }

  /// Ends the server and returns the seconds that this took.
  double end() {
    const Timer timer;
    http_->close();
    thread_.join();
    return timer.seconds();
  }
};

// Longer than ending_seconds, for slow machines, but shorter than all other limits.
constexpr double kSoon = 8;

TEST_F(HttpEnding, WaitsForNoHalfRequest) {
  start();
  const std::string post = "POST /tokenize HTTP/1.1\r\nHost: localhost\r\n";
  const int header = connect_and_send(post);
  const int body = connect_and_send(post + "Content-Length: 100\r\n\r\n{\"con");
  ASSERT_TRUE(eventually([&] { return http_->bodies().used() > 0; })) << "is not being read";
  const int chunked = connect_and_send(post + "Transfer-Encoding: chunked\r\n\r\n4\r\n{\"");
  const int silent = connect_and_send("");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_LT(end(), kSoon);
  EXPECT_TRUE(receive(body).starts_with("HTTP/1.1 503")) << "no answer, or a false one";
  for (const int socket : {header, body, chunked, silent}) close(socket);
}

TEST_F(HttpEnding, WaitsForNoBodyThatComesByteByByte) {
  start();
  const int body = connect_and_send(
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n");
  std::atomic<bool> ended = false;
  std::thread drip([&] {
    while (!ended) {
      (void)!::send(body, " ", 1, MSG_NOSIGNAL);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_LT(end(), kSoon);
  ended = true;
  drip.join();
  close(body);
}

/// An answer's body, as it was sent: in chunks, if it has any.
std::string body_of(const std::string& answer) {
  const size_t end = answer.find("\r\n\r\n");
  return end == answer.npos ? "" : answer.substr(end + 4);
}

TEST_F(HttpEnding, EndsAnswersThatAreComputedStill) {
  engine_.set_script([](const Request&, RequestUpdates& updates) {
    updates.push(PromptRead{});
    updates.push(AnswerPart{0, "half an", {}});
  });
  start();
  const std::string half = R"({"prompt": "x", "stream": true})";
  std::string in_http10 = request(half);
  in_http10.replace(in_http10.find("HTTP/1.1"), 8, "HTTP/1.0");
  const int plain = connect_and_send(request(R"({"prompt": "x"})"));
  const int stream = connect_and_send(request(half));
  const int old_stream = connect_and_send(in_http10);
  ASSERT_TRUE(eventually([&] { return engine_.generations().size() == 3; }));
  EXPECT_LT(end(), kSoon);
  EXPECT_TRUE(receive(plain).starts_with("HTTP/1.1 503"));
  for (const int socket : {stream, old_stream}) {
    const std::string cut = receive(socket);
    EXPECT_TRUE(cut.starts_with("HTTP/1.1 200")) << cut;
    EXPECT_NE(cut.find("half an"), std::string::npos) << cut;
    EXPECT_NE(cut.find("the server is about to end"), std::string::npos) << cut;
    EXPECT_EQ(cut.find("[DONE]"), std::string::npos) << cut;
    EXPECT_FALSE(body_of(cut).ends_with("0\r\n\r\n")) << "what was cut looks whole: " << cut;
  }
  for (const auto& updates : engine_.generations()) EXPECT_TRUE(updates->cancelled());
  for (const int socket : {plain, stream, old_stream}) close(socket);
}

class HttpHalfClosed : public Http {
 protected:
  void SetUp() override {
    http_options_.connection.sign_seconds = 0.1;
    engine_.set_script([](const Request&, RequestUpdates& updates) { updates.push(PromptRead{}); });
    start();
  }
  /// Sends a request, closes the client's side, and waits until the engine has the request.
  int half_close(const std::string& text) {
    const size_t n = engine_.generations().size();
    const int socket = connect_and_send(text);
    ::shutdown(socket, SHUT_WR);
    EXPECT_TRUE(eventually([&] { return engine_.generations().size() > n; }));
    return socket;
  }
  /// Waits long enough for the server to consider the client gone, then answers.
  void answer_late() {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_FALSE(engine_.generations().back()->cancelled());
    engine_.generations().back()->push(AnswerPart{0, "late", {}});
    engine_.generations().back()->push(AnswerEnd{});
  }
};

TEST_F(HttpHalfClosed, GetsItsWholeAnswer) {
  int socket = half_close(request(R"({"prompt": "x"})"));
  answer_late();
  const std::string plain = receive(socket);
  close(socket);
  EXPECT_TRUE(plain.starts_with("HTTP/1.1 100 Continue\r\n\r\n")) << plain;
  EXPECT_NE(plain.find("\r\n\r\nHTTP/1.1 200 OK\r\n"), std::string::npos) << plain;
  EXPECT_NE(plain.find("late"), std::string::npos) << plain;

  socket = half_close(request(R"({"prompt": "x", "stream": true})"));
  EXPECT_NE(receive(socket, ": ping").find(": ping"), std::string::npos);
  answer_late();
  const std::string stream = receive(socket);
  close(socket);
  EXPECT_NE(stream.find("late"), std::string::npos) << stream;
  EXPECT_TRUE(stream.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n")) << stream;
}

TEST_F(HttpHalfClosed, IsGoneWhenItClosesTheRest) {
  for (const char* body : {R"({"prompt": "x", "stream": true})", R"({"prompt": "x"})"}) {
    const int socket = half_close(request(body));
    (void)receive(socket, "\r\n\r\n");  // one sign has come, so only the next can fail to send
    close(socket);
    EXPECT_TRUE(eventually([&] { return engine_.generations().back()->cancelled(); })) << body;
    EXPECT_TRUE(eventually([&] { return service_->idle(); }));
  }
}

TEST_F(HttpHalfClosed, IsToldThatItsAnswerWasGivenUpInHttp10) {
  std::string text = request(R"({"prompt": "x"})");
  text.replace(text.find("HTTP/1.1"), 8, "HTTP/1.0");
  const int socket = half_close(text);
  const std::string answer = receive(socket);
  close(socket);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 499")) << answer;
  EXPECT_NE(answer.find("client_closed_request"), std::string::npos) << answer;
  EXPECT_TRUE(engine_.generations().back()->cancelled());
}

}  // namespace
}  // namespace snapkv::test
