// SPDX-License-Identifier: MIT
// HttpServer: httplib's parser and routes over connections of our own (connection.h), accepted here
// with a bound on how many there are, and TLS. Made by the command `serve` and by tests.
#pragma once

#include <httplib.h>

#include <atomic>
#include <string>

#include "server/http/connection.h"

namespace snapkv::server {

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8080;                ///< 0: any that is free
  std::string tls_cert, tls_key;  ///< files in PEM; both or none
  size_t most_connections = 512;
  size_t most_body = size_t{64} << 20;  ///< bytes of a request's body
  ConnectionLimits connection = {};
};

class HttpServer : public httplib::Server {
 public:
  /// Throws Error{kUsage} for TLS files that can't be used.
  explicit HttpServer(const HttpOptions& options);
  ~HttpServer() override;

  /// Opens the port; returns it. Throws Error{kRuntime}.
  int open();
  /// Serves until close() is called and every connection is closed: answers that are computed then
  /// are cut, and clients that are sending a request have a second left. Where the system refuses a
  /// descriptor, memory or a thread, it is that connection alone that is not served.
  void serve();
  bool is_running() const { return running_; }
  void close();

  const HttpOptions& options() const { return options_; }

 private:
  /// Owns the socket; whatever a client does ends here.
  void serve_connection(int socket);
  void refuse(int socket) const;
  /// In the header of an answer after which the connection is closed.
  void announce_close(httplib::Response& response) const;

  const HttpOptions options_;
  SSL_CTX* tls_ = nullptr;
  int listening_ = -1;
  std::atomic<bool> running_ = false;
  Ending ending_;
};

}  // namespace snapkv::server
