// SPDX-License-Identifier: MIT
// The HTTP server with a scripted engine, and clients that may send any bytes.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/timer.h"
#include "server/service.h"
#include "tests/server/scripted_engine.h"

namespace snapkv::test {

using namespace server;

class Http : public testing::Test {
 protected:
  ScriptedEngine engine_;
  ApiOptions api_ = api_options();
  HttpOptions http_options_;
  ServiceOptions service_options_;
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<Service> service_;
  std::thread thread_;
  int port_ = 0;

  void start(bool begin = true) {
    http_options_.port = 0;
    http_ = std::make_unique<HttpServer>(http_options_);
    service_ = std::make_unique<Service>(*http_, service_options_);
    port_ = http_->open();
    thread_ = std::thread([this] { http_->serve(); });
    while (!http_->is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (begin) service_->begin(engine_, api_);
  }
  ~Http() override {
    if (!thread_.joinable()) return;
    http_->close();
    thread_.join();
  }

  /// A client that waits as long as a busy machine takes; httplib's own limit is 5 seconds.
  httplib::Client client() const {
    httplib::Client client("127.0.0.1", port_);
    client.set_read_timeout(100);
    client.set_write_timeout(100);
    return client;
  }
  httplib::Result post(const std::string& path, const std::string& body) const {
    return client().Post(path, body, "application/json");
  }
  /// Opens a connection and sends this text.
  int connect_and_send(const std::string& text) const {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port_));
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    EXPECT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::send(socket, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    return socket;
  }
  /// Returns all that comes until the server closes the connection, or until `part` has come.
  static std::string receive(int socket, const std::string& part = "") {
    std::string all;
    char buffer[4096];
    for (ssize_t n; (n = recv(socket, buffer, sizeof(buffer), 0)) > 0;) {
      all.append(buffer, static_cast<size_t>(n));
      if (!part.empty() && all.find(part) != std::string::npos) break;
    }
    return all;
  }
  static std::string request(const std::string& body) {
    return "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  static bool eventually(const std::function<bool()>& condition) {
    const Timer timer;
    while (!condition() && timer.seconds() < 60) {  // long enough for sanitizers
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return condition();
  }
};

}  // namespace snapkv::test
