// SPDX-License-Identifier: MIT
// The end of the server, and clients that are slow, or have closed their side, meanwhile.
#include <atomic>

#include "tests/server/http_support.h"

namespace snapkv::test {
namespace {

class HttpEnding : public Http {
 protected:
  void SetUp() override { http_options_.connection.ending_seconds = 0.3; }

  /// Seconds until the server has ended.
  double end() {
    const Timer timer;
    http_->close();
    thread_.join();
    return timer.seconds();
  }
};

// more than the 0.3 s for slow machines, less than any of the other limits
constexpr double kSoon = 8;

TEST_F(HttpEnding, WaitsForNoHalfRequest) {
  start();
  const std::string post = "POST /tokenize HTTP/1.1\r\nHost: localhost\r\n";
  const int header = connect_and_send(post);
  const int body = connect_and_send(post + "Content-Length: 100\r\n\r\n{\"con");
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

TEST_F(HttpEnding, EndsAnswersThatAreComputedStill) {
  engine_.set_script([](const Request&, Generation& generation) { generation.push(PromptRead{}); });
  start();
  const int plain = connect_and_send(request(R"({"prompt": "x"})"));
  const int stream = connect_and_send(request(R"({"prompt": "x", "stream": true})"));
  ASSERT_TRUE(eventually([&] { return engine_.generations().size() == 2; }));
  EXPECT_LT(end(), kSoon);
  EXPECT_TRUE(receive(plain).starts_with("HTTP/1.1 503"));
  EXPECT_FALSE(receive(stream).ends_with("0\r\n\r\n")) << "an answer that was cut looks whole";
  for (const auto& generation : engine_.generations()) EXPECT_TRUE(generation->cancelled());
  for (const int socket : {plain, stream}) close(socket);
}

}  // namespace
}  // namespace snapkv::test
