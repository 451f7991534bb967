// SPDX-License-Identifier: MIT
// HttpServer: httplib's parser and routes over our own connections (connection.h), with TLS. The
// number of connections is limited; those beyond the limit learn at least how the server is
// (overflow.h).
#pragma once

#include <httplib.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "server/http/body_memory.h"
#include "server/http/connection.h"
#include "server/http/overflow.h"

namespace snapkv::server {

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8080;                ///< 0: any free port
  std::string socket;             ///< path of a Unix socket to listen at instead; empty: none
  std::string tls_cert, tls_key;  ///< PEM files; both or neither
  size_t most_connections = 512;
  size_t most_of_address = 384;          ///< connections from one address
  size_t most_body = size_t{64} << 20;   ///< bytes of a request's body
  size_t body_memory = size_t{1} << 30;  ///< for all bodies, from receiving to tokens
  double body_wait_seconds = 30;         ///< how long a body waits for such memory
  ConnectionLimits connection = {};
};

class HttpServer : public httplib::Server {
 public:
  /// Throws Error{kUsage} if the TLS files can't be used.
  explicit HttpServer(const HttpOptions& options);
  ~HttpServer() override;

  /// Opens the port and returns its number; 0 for a Unix socket, which its owner alone may use.
  /// Throws Error{kRuntime}.
  int open();
  /// Serves until close() is called and every connection is closed: answers still being computed
  /// are then cut short, and clients still sending a request have one more second. If the system
  /// refuses a descriptor, memory or a thread, only that connection is not served.
  void serve();
  bool is_running() const { return running_; }
  void close();

  const HttpOptions& options() const { return options_; }
  /// The memory of bodies, whose limit may be changed.
  BodyMemory& bodies() { return bodies_; }
  const BodyMemory& bodies() const { return bodies_; }
  /// Bytes of the largest body that is taken.
  size_t most_body() const;

 private:
  int open_port();
  void open_socket();
  /// Owns the socket. Nothing that a client does has an effect beyond this call.
  void serve_connection(int socket);
  /// Reads a request and answers it: process_request(), whose parameters differ between versions.
  /// Returns whether another request may follow.
  template <typename Stream>
  bool answer_request(Stream& connection, bool is_last);
  void answer_overflow(int socket, SSL* ssl, std::string received);
  /// Decides whether the connection ends with this answer, whose headers say so.
  void announce_end(const httplib::Request& request, httplib::Response& response) const;

  const HttpOptions options_;
  SSL_CTX* tls_ = nullptr;
  int listening_ = -1;
  std::atomic<bool> running_ = false;
  Ending ending_;
  BodyMemory bodies_;
  std::unique_ptr<Overflow> overflow_;
};

}  // namespace snapkv::server
