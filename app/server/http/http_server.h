// SPDX-License-Identifier: MIT
// HttpServer: httplib's parser and routes over our own connections (connection.h), whose number is
// limited, with TLS.
#pragma once

#include <httplib.h>

#include <atomic>
#include <string>

#include "server/http/connection.h"

namespace snapkv::server {

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8080;                ///< 0: any free port
  std::string tls_cert, tls_key;  ///< PEM files; both or neither
  size_t most_connections = 512;
  size_t most_body = size_t{64} << 20;  ///< bytes of a request's body
  ConnectionLimits connection = {};
};

class HttpServer : public httplib::Server {
 public:
  /// Throws Error{kUsage} if the TLS files can't be used.
  explicit HttpServer(const HttpOptions& options);
  ~HttpServer() override;

  /// Opens the port and returns its number. Throws Error{kRuntime}.
  int open();
  /// Serves until close() is called and every connection is closed: answers still being computed
  /// are then cut short, and clients still sending a request have one more second. If the system
  /// refuses a descriptor, memory or a thread, only that connection is not served.
  void serve();
  bool is_running() const { return running_; }
  void close();

  const HttpOptions& options() const { return options_; }

 private:
  /// Owns the socket. Nothing that a client does has an effect beyond this call.
  void serve_connection(int socket);
  void refuse(int socket) const;
  /// Adds headers to an answer after which the connection is closed.
  void announce_close(httplib::Response& response) const;

  const HttpOptions options_;
  SSL_CTX* tls_ = nullptr;
  int listening_ = -1;
  std::atomic<bool> running_ = false;
  Ending ending_;
};

}  // namespace snapkv::server
