// SPDX-License-Identifier: MIT
// The end of a request: no byte of a body may be read as a request, whatever error came before it,
// and no body may be read without a limit.
#include <algorithm>

#include "server/http/chunks.h"
#include "tests/server/http_support.h"

namespace snapkv::test {
namespace {

const std::string kHidden = "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n";

class HttpFraming : public Http {
 protected:
  void SetUp() override {
    http_options_.connection.read_seconds = 5;
    start();
  }
  /// Returns all that the server sends until it closes the connection, or until `part` has come.
  std::string send(const std::string& text, const std::string& part = "") const {
    const int socket = connect_and_send(text);
    std::string answer = receive(socket, part);
    close(socket);
    return answer;
  }
  static int n_answers(const std::string& text) {
    int n = 0;
    for (size_t at = 0; (at = text.find("HTTP/1.1 ", at)) != std::string::npos; ++at) ++n;
    return n;
  }
  static std::string with_hidden(const std::string& line, const std::string& headers) {
    return line + "\r\nHost: localhost\r\n" + headers + "\r\n" + kHidden;
  }
};

TEST_F(HttpFraming, NoBodyIsReadAsARequest) {
  const std::string length = "Content-Length: " + std::to_string(kHidden.size()) + "\r\n";
  const std::string post = "POST /tokenize HTTP/1.1";
  const std::pair<std::string, std::string> kCases[] = {
      {with_hidden("POST /tokenize HTTP/9.9", length), "400"},
      {with_hidden("BREW /tokenize HTTP/1.1", length), "400"},
      {with_hidden("POST /tokenize", length), "400"},
      {with_hidden("POST /" + std::string(9000, 'a') + " HTTP/1.1", length), "414"},
      {with_hidden(post, "X: " + std::string(9000, 'a') + "\r\n" + length), "400"},
      {with_hidden(post, "Range: x\r\n" + length), "416"},
      {with_hidden(post, "Content-Length : 9\r\n"), "400"},
      {with_hidden(post, " Content-Length: 9\r\n"), "400"},
      {with_hidden(post, length + "Transfer-Encoding: chunked\r\n"), "400"},
      {with_hidden("POST /tokenize HTTP/1.0", "Transfer-Encoding: chunked\r\n"), "400"},
      {with_hidden(post, "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), "501"},
      {with_hidden(post, "Transfer-Encoding: gzip\r\n"), "501"},
      {with_hidden(post, "Transfer-Encoding: gzip, chunked\r\n"), "501"},
      {with_hidden(post, "Transfer-Encoding: chunked\r\n"), "400"},
      {with_hidden("POST /none HTTP/1.1", length), "404"},
      {with_hidden("POST /none HTTP/1.1", "Transfer-Encoding: chunked\r\n"), "404"},
      {with_hidden("POST /no%0d%0ane HTTP/1.1", "Transfer-Encoding: chunked\r\n"), "404"},
      {with_hidden("POST /" + std::string(8000, 'a') + " HTTP/1.1", length), "404"},
      {with_hidden("PUT /tokenize HTTP/1.1", length), "405"},
      {with_hidden("PUT /tokenize HTTP/1.1", "Transfer-Encoding: chunked\r\n"), "400"},
      {with_hidden("DELETE /v1/kv/snapshots/x HTTP/1.1", "Transfer-Encoding: chunked\r\n"), "400"},
      {with_hidden("DELETE /v1/kv/snapshots/x HTTP/1.1", "Content-Length: 99999999999\r\n"), "413"},
      {with_hidden("DELETE /v1/kv/snapshots/x HTTP/1.1",
                   "Content-Type: multipart/form-data\r\n" + length),
       "501"},
      {with_hidden("DELETE /v1/kv/snapshots/x HTTP/1.1", "Content-Encoding: gzip\r\n" + length),
       "501"},
      {with_hidden("DELETE /none HTTP/1.1", length), "404"},
      {with_hidden(post, "Content-Length: 44\n"), "400"},
      {with_hidden(post, "Content-Length 44\r\n"), "400"},
      {with_hidden(post, "Content-Length:\r\n"), "400"},
      {with_hidden(post, "X: a\n" + length), "400"},
      // a bare line feed: cpp-httplib accepted it once (200), later not (400)
      {with_hidden("GET /health HTTP/1.1", "Content-Length: 44\n"), ""},
      {with_hidden("GET /health HTTP/1.1", "Transfer-Encoding: chunked\r\n"), "400"},
      {with_hidden("GET /health HTTP/1.1", length), "200"},
      {with_hidden("GET /health HTTP/1.1", "Content-Length: 60000000\r\n"), "200"},
      {with_hidden("GET /health HTTP/1.1", "Content-Length: 4x\r\n"), "400"},
      {with_hidden("OPTIONS /health HTTP/1.1", length), "204"},
  };
  const Timer timer;
  for (const auto& [text, status] : kCases) {
    const std::string answer = send(text);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + status)) << text << "\n" << answer;
    EXPECT_EQ(n_answers(answer), 1) << text << "\n" << answer;
    EXPECT_NE(answer.find("Connection: close"), std::string::npos) << text << "\n" << answer;
    EXPECT_EQ(answer.find("Keep-Alive"), std::string::npos) << text << "\n" << answer;
  }
  EXPECT_LT(timer.seconds(), 5) << "what can't be read is refused at once";
}

TEST_F(HttpFraming, AnswersToWholeRequestsKeepTheConnection) {
  for (const auto& [line, status] :
       {std::pair("GET /none", "404"), std::pair("GET /health", "200"),
        std::pair("POST /tokenize", "400"), std::pair("DELETE /v1/kv/snapshots/x", "501")}) {
    const std::string answer = send(with_hidden(std::string(line) + " HTTP/1.1", ""), "needle");
    EXPECT_TRUE(answer.starts_with(std::string("HTTP/1.1 ") + status)) << line << "\n" << answer;
    EXPECT_EQ(n_answers(answer), 2) << line << "\n" << answer;
    EXPECT_EQ(answer.find("Connection: close"), std::string::npos) << line << "\n" << answer;
    EXPECT_NE(answer.find("Keep-Alive: timeout=15, max=1000\r\n"), std::string::npos)
        << line << "\n"
        << answer;
  }
}

TEST_F(HttpFraming, AConnectionEndsAsTheClientAsks) {
  for (const char* value : {"close", "Close", "TE, close", "close,TE"}) {
    const std::string answer =
        send(with_hidden("GET /health HTTP/1.1", std::string("Connection: ") + value + "\r\n"),
             "needle");
    EXPECT_EQ(n_answers(answer), 1) << value << "\n" << answer;
    EXPECT_NE(answer.find("Connection: close"), std::string::npos) << value << "\n" << answer;
  }
  const std::string kept =
      send(with_hidden("GET /health HTTP/1.1", "Connection: TE, closer\r\n"), "needle");
  EXPECT_EQ(n_answers(kept), 2) << kept;
  for (const auto& [header, n] : {std::pair("", 1), std::pair("Connection: Keep-Alive\r\n", 2)}) {
    const std::string answer = send(with_hidden("GET /health HTTP/1.0", header), "needle");
    EXPECT_EQ(n_answers(answer), n) << header << answer;
    EXPECT_EQ(answer.find("Connection: close") == std::string::npos, n == 2) << header << answer;
  }
}

TEST_F(HttpFraming, WebSocketIsNotSpoken) {
  const std::string upgrade =
      "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  const std::string answer = send(with_hidden("GET /health HTTP/1.1", upgrade), "needle");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
  EXPECT_EQ(n_answers(answer), 2) << answer;
  int n_ids = 0;
  for (size_t at = 0; (at = answer.find("\nx-request-id", at)) != std::string::npos; ++at) ++n_ids;
  EXPECT_EQ(n_ids, 2) << answer;
}

TEST_F(HttpFraming, RangesAreNotLookedAt) {
  std::string all = "bytes=0-";
  for (int i = 0; i < 1000; ++i) all += ",0-";
  const std::string whole = client().Get("/props")->body;
  for (const std::string& range : {std::string("bytes=0-9"), std::string("bytes=5-"), all}) {
    const auto props = client().Get("/props", {{"Range", range}});
    ASSERT_TRUE(props);
    EXPECT_EQ(props->status, 200);
    EXPECT_EQ(props->body, whole);
    const auto answer = client().Post("/v1/completions", {{"Range", range}}, R"({"prompt": "x"})",
                                      "application/json");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(Json::parse(answer->body)["choices"][0]["text"], "Hello");
  }
}

TEST_F(HttpFraming, BodiesInChunks) {
  const std::string post =
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n";
  const std::string first = "9\r\n{\"content\r\n", rest = "8\r\n\": \"Hi\"}\r\n";
  for (const std::string& chunks :
       {first + rest + "0\r\n\r\n", "9;a=b;c=\"d\"\r\n{\"content\r\n" + rest + "000\r\n\r\n",
        first + rest + "0;last\r\n\r\n", first + rest + "0\r\nX-Sum: 1\r\nX: 2\r\n\r\n"}) {
    const std::string answer = send(post + "\r\n" + chunks + kHidden, "needle");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << chunks << "\n" << answer;
    EXPECT_EQ(n_answers(answer), 2) << chunks << "\n" << answer;
  }
  const std::string answer =
      send(post + "Content-Encoding: gzip\r\n\r\n" + first + rest + "0\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 415")) << answer;
}

/// The body in these bytes; if they are invalid, "!" and the part that was read.
std::string decode(const std::string& bytes, size_t most = 1000) {
  std::string body;
  size_t at = 0;
  const bool complete = read_chunks(
      [&](char* data, size_t size) {
        const size_t n = std::min({size, bytes.size() - at, size_t{3}});
        bytes.copy(data, n, at);
        at += n;
        return static_cast<ssize_t>(n);
      },
      [&](const char* data, size_t size) {
        body.append(data, size);
        return body.size() <= most;
      });
  return complete ? body : "!" + body;
}

TEST(Chunks, AreDecoded) {
  EXPECT_EQ(decode("0\r\n\r\n"), "");
  EXPECT_EQ(decode("3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n"), "abc0123456789");
  EXPECT_EQ(decode("3 ; x=y\r\nabc\r\n0\r\nSum: 1\r\n\r\n"), "abc");
  for (const char* bad : {"", "\r\n", "x\r\n", "-1\r\n", "+1\r\na\r\n0\r\n\r\n",
                          "0x1\r\na\r\n0\r\n\r\n", "1x\r\na\r\n0\r\n\r\n", "0\n\n", "0\r\n",
                          "0\r\nX", "fffffffffffffffff\r\n", " 0\r\n\r\n"}) {
    EXPECT_EQ(decode(bad), "!") << bad;
  }
  EXPECT_EQ(decode("2\r\nabc\r\n0\r\n\r\n"), "!ab") << "a chunk that is longer than it says";
  EXPECT_EQ(decode("5\r\nabc"), "!abc");
  EXPECT_EQ(decode("5\r\nabcde\r\n0\r\n\r\n", 4), "!abcde");
  EXPECT_EQ(decode("0;" + std::string(10'000, 'x') + "\r\n\r\n"), "");
  EXPECT_EQ(decode("0;" + std::string(20'000, 'x') + "\r\n\r\n"), "!");
  std::string trailers = "0\r\n";
  for (int i = 0; i < 2000; ++i) trailers += "X: 12345678\r\n";
  EXPECT_EQ(decode(trailers + "\r\n"), "!");
}

TEST_F(HttpFraming, ARequestNamesOneHost) {
  const auto status = [&](const std::string& head) {
    return send("GET /health " + head + "Connection: close\r\n\r\n").substr(9, 3);
  };
  EXPECT_EQ(status("HTTP/1.1\r\nHost: localhost\r\n"), "200");
  EXPECT_EQ(status("HTTP/1.1\r\n"), "400");
  EXPECT_EQ(status("HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n"), "400");
  EXPECT_EQ(status("HTTP/1.1\r\nHost: localhost\r\nhost: other\r\n"), "400");
  EXPECT_EQ(status("HTTP/1.0\r\n"), "200") << "HTTP/1.0 does not know it";
  EXPECT_EQ(status("HTTP/1.0\r\nHost: a\r\nHost: b\r\n"), "400");
}

TEST_F(HttpFraming, AStreamOfHttp10EndsWithItsConnection) {
  const std::string body = R"({"prompt": "x", "stream": true})";
  const std::string answer =
      send("POST /v1/completions HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body);
  const size_t end = answer.find("\r\n\r\n");
  ASSERT_NE(end, answer.npos) << answer;
  const std::string header = answer.substr(0, end);
  EXPECT_EQ(header.find("Transfer-Encoding"), header.npos) << header;
  EXPECT_NE(header.find("Connection: close"), header.npos) << header;
  EXPECT_EQ(answer.substr(end + 4, 6), "data: ") << answer;
  EXPECT_TRUE(answer.ends_with("data: [DONE]\n\n")) << answer;
}

}  // namespace
}  // namespace snapkv::test
