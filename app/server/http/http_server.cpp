// SPDX-License-Identifier: MIT
#include "server/http/http_server.h"

#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <thread>
#include <utility>

#include "base/error.h"
#include "server/http/connection_pool.h"

namespace snapkv::server {
namespace {

constexpr int kBacklog = 512;  // for bursts of connections; httplib's own value is 5

constexpr std::chrono::milliseconds kAcceptPause(10);

/// The bytes of an address that tell clients apart: of IPv6 those of the network, since a client
/// may choose the others.
std::string key_of(const sockaddr_storage& address) {
  const auto text = [](const void* bytes, size_t n) {
    return std::string(static_cast<const char*>(bytes), n);
  };
  if (address.ss_family == AF_INET) {
    return text(&reinterpret_cast<const sockaddr_in&>(address).sin_addr, 4);
  }
  if (address.ss_family != AF_INET6) return "";
  const in6_addr& ip = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_V4MAPPED(&ip) ? text(ip.s6_addr + 12, 4) : text(ip.s6_addr, 8);
}

/// Gives no password for a key, instead of asking at the terminal, and notes that one is needed.
int no_password(char*, int, int, void* is_asked) {
  *static_cast<bool*>(is_asked) = true;
  return -1;
}

SSL_CTX* make_tls(const std::string& cert, const std::string& key) {
  if (cert.empty() && key.empty()) return nullptr;
  if (cert.empty() || key.empty()) {
    fail(ErrorCode::kUsage, "TLS needs both: --tls-cert FILE and --tls-key FILE");
  }
  for (const auto& [option, file] : {std::pair("--tls-cert", cert), std::pair("--tls-key", key)}) {
    errno = 0;
    if (!std::ifstream(file))
      fail(ErrorCode::kUsage, "{} '{}': {}", option, file, std::strerror(errno));
  }
  SSL_CTX* tls = SSL_CTX_new(TLS_server_method());
  SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION);
  bool is_encrypted = false;
  SSL_CTX_set_default_passwd_cb(tls, no_password);
  SSL_CTX_set_default_passwd_cb_userdata(tls, &is_encrypted);
  SSL_CTX_set_mode(tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  const auto check = [&](int result, const char* option, const std::string& file) {
    if (result == 1) return;
    const char* reason = ERR_reason_error_string(ERR_peek_last_error());
    SSL_CTX_free(tls);
    if (is_encrypted) {
      fail(ErrorCode::kUsage,
           "{} '{}' is encrypted, and the server has no password for it: decrypt it, as with "
           "'openssl pkey -in {} -out decrypted.pem'",
           option, file, file);
    }
    fail(ErrorCode::kUsage, "{} '{}' can't be used: {}", option, file,
         reason != nullptr ? reason : "unknown error");
  };
  check(SSL_CTX_use_certificate_chain_file(tls, cert.c_str()), "--tls-cert", cert);
  check(SSL_CTX_use_PrivateKey_file(tls, key.c_str(), SSL_FILETYPE_PEM), "--tls-key", key);
  check(SSL_CTX_check_private_key(tls), "--tls-key", key);
  SSL_CTX_set_default_passwd_cb_userdata(tls, nullptr);
  return tls;
}

/// Whether the client wants no other answer on its connection.
bool is_last_of_client(const httplib::Request& request) {
  const auto [begin, end] = request.headers.equal_range("Connection");
  if (request.version == "HTTP/1.0") {  // all versions of the library know this spelling
    return std::distance(begin, end) != 1 || begin->second != "Keep-Alive";
  }
  return std::any_of(begin, end, [](const auto& header) {
    const std::string_view list = header.second;  // "close, TE"
    for (size_t at = 0; at < list.size();) {
      const size_t comma = std::min(list.find(',', at), list.size());
      std::string option(list.substr(at, comma - at));
      std::erase_if(option, [](char c) { return c == ' ' || c == '\t'; });
      if (strcasecmp(option.c_str(), "close") == 0) return true;
      at = comma + 1;
    }
    return false;
  });
}

/// Changes a request whose header has been read, before it is routed, so that all versions of the
/// library treat it alike. A template, so that only the members that it has are compiled.
template <typename Request>
void make_alike(Request& request) {
  // answers are computed, so no part of one can be requested again, nor one part a thousand times
  request.ranges.clear();
  // After a body that was not read, Service closes the connection. Versions from 0.40 on would read
  // it after the answer, or, where chunks were read without them, what comes after it.
  if constexpr (requires { request.body_consumed_; }) request.body_consumed_ = true;
  // The body of a GET has no meaning; newer versions would read it into their own memory. The
  // header stays, so that the connection is closed.
  if (request.method != "GET" && request.method != "HEAD") return;
  if (request.get_header_value_count("Content-Length") != 1) return;
  std::string& length = request.headers.find("Content-Length")->second;
  const bool is_valid = length.find_first_not_of("0123456789") == std::string::npos;
  if (is_valid && !length.empty()) length = "0";
}

}  // namespace

HttpServer::HttpServer(const HttpOptions& options)
    : options_(options),
      tls_(make_tls(options.tls_cert, options.tls_key)),
      bodies_(options.body_memory, options.body_wait_seconds) {
  set_payload_max_length(options_.most_body);
  set_post_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    announce_end(request, response);
  });
  set_address_family(AF_UNSPEC);
  // a port in use by another server must be an error; httplib's default would share it
  set_socket_options([](socket_t socket) {
    const int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  });
}

HttpServer::~HttpServer() {
  if (listening_ >= 0) ::close(listening_);
  if (listening_ >= 0 && !options_.socket.empty()) ::unlink(options_.socket.c_str());
  if (tls_ != nullptr) SSL_CTX_free(tls_);
}

size_t HttpServer::most_body() const { return std::min(options_.most_body, bodies_.most_body()); }

int HttpServer::open() {
  int port = 0;
  if (options_.socket.empty()) {
    port = open_port();
  } else {
    open_socket();
  }
  ::listen(listening_, kBacklog);
  overflow_ = std::make_unique<Overflow>(
      tls_,
      [this](int socket, SSL* ssl, std::string received) {
        answer_overflow(socket, ssl, std::move(received));
      },
      [this] { bodies_.trim(); });
  return port;
}

void HttpServer::open_socket() {
  const std::string& path = options_.socket;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    fail(ErrorCode::kUsage, "the socket '{}': its path has {} bytes, at most {} are possible", path,
         path.size(), sizeof(address.sun_path) - 1);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  listening_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const mode_t before = ::umask(S_IRWXG | S_IRWXO);
  const bool bound = listening_ >= 0 && ::bind(listening_, reinterpret_cast<sockaddr*>(&address),
                                               sizeof(address)) == 0;
  const int error = errno;
  ::umask(before);
  if (!bound) fail(ErrorCode::kRuntime, "can't listen at '{}': {}", path, std::strerror(error));
  svr_sock_ = listening_;  // without one, the library ends all streams
}

int HttpServer::open_port() {
  errno = 0;
  const int port = options_.port == 0
                       ? bind_to_any_port(options_.host)
                       : (bind_to_port(options_.host, options_.port) ? options_.port : -1);
  if (port <= 0) {
    fail(ErrorCode::kRuntime, "can't listen on {}:{}: {}", options_.host, options_.port,
         errno != 0 ? std::strerror(errno) : "the address can't be used");
  }
  listening_ = svr_sock_;
  return port;
}

void HttpServer::serve() {
  ConnectionPool pool({options_.most_connections, options_.most_of_address});
  running_ = true;
  while (!ending_.begun()) {
    sockaddr_storage address = {};
    socklen_t size = sizeof(address);
    const int socket =
        accept4(listening_, reinterpret_cast<sockaddr*>(&address), &size, SOCK_CLOEXEC);
    if (socket >= 0) {
      if (!pool.enqueue([this, socket] { serve_connection(socket); }, key_of(address))) {
        overflow_->take(socket);
      }
    } else if (errno != EINTR && errno != ECONNABORTED) {
      // no descriptor or no memory: connections wait in the system until there is
      std::this_thread::sleep_for(kAcceptPause);
    }
  }
  overflow_.reset();
  pool.shutdown();
  running_ = false;
}

void HttpServer::close() {
  ending_.begin();
  ::shutdown(listening_, SHUT_RDWR);  // ends accept4()
}

void HttpServer::announce_end(const httplib::Request& request, httplib::Response& response) const {
  Connection* connection = Connection::current();
  if (connection == nullptr) return;
  // a request that failed before it was routed: the bytes after it may be its body
  if (connection->in_header()) connection->close_after_answer();
  if (is_last_of_client(request)) connection->end_after_answer();
  // versions of the library differ in what they write; from 0.28 on they close after any error
  response.headers.erase("Keep-Alive");
  response.headers.erase("Connection");
  if (connection->ends() || ending_.begun()) {
    response.set_header("Connection", "close");
  } else {
    response.set_header(
        "Keep-Alive",
        "timeout=" + std::to_string(static_cast<int64_t>(options_.connection.idle_seconds)) +
            ", max=" + std::to_string(options_.connection.requests));
  }
}

// A template, so that only the call that the library has is compiled.
template <typename Stream>
bool HttpServer::answer_request(Stream& connection, bool is_last) {
  connection.begin_header();
  if (is_last) connection.end_after_answer();
  const std::function<void(httplib::Request&)> set_up = [](auto& request) { make_alike(request); };
  bool closed = false, done = false;
  if constexpr (requires { process_request(connection, is_last, closed, set_up); }) {
    // asks the stream for addresses
    done = process_request(connection, is_last, closed, set_up);
  } else {
    std::string client, host;
    int client_port = 0, port = 0;
    connection.get_remote_ip_and_port(client, client_port);
    connection.get_local_ip_and_port(host, port);
    done = process_request(connection, client, client_port, host, port, is_last, closed, set_up);
  }
  return done && !closed && !connection.ends();
}

void HttpServer::answer_overflow(int socket, SSL* ssl, std::string received) {
  ConnectionLimits limits = options_.connection;  // the thread of all such connections can't wait
  limits.header_seconds = limits.write_seconds = limits.closing_seconds = 0;
  Connection connection(socket, ssl, limits, ending_, std::move(received));
  answer_request(connection, true);
}

void HttpServer::serve_connection(int socket) {
  SSL* const ssl = tls_ != nullptr ? SSL_new(tls_) : nullptr;
  if (tls_ != nullptr && ssl == nullptr) {  // out of memory; must not fall back to plain text
    ::close(socket);
    return;
  }
  Connection connection(socket, ssl, options_.connection, ending_);
  if (!connection.accept()) return;
  for (int left = options_.connection.requests; left > 0; --left) {
    if (!connection.wait_for_request() || !answer_request(connection, left == 1)) return;
  }
}

}  // namespace snapkv::server
