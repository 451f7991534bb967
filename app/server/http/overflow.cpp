// SPDX-License-Identifier: MIT
#include "server/http/overflow.h"

#include <fcntl.h>
#include <poll.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace snapkv::server {
namespace {

/// More connections than this push out the oldest one.
constexpr size_t kMostClients = 256;
constexpr size_t kMostHeader = 8 << 10;
constexpr int kLookEvery = 100;  // ms
constexpr std::chrono::seconds kHeaderTime(2), kClosingTime(1);

constexpr std::string_view kRefusal =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
    "Connection: close\r\nContent-Length: 110\r\n\r\n"
    R"({"error":{"message":"too many connections","type":"server_error","param":null,)"
    R"("code":"too_many_connections"}} )";

/// Whether the header is one of a request without a body that asks how the server is.
bool asks_for_state(const std::string& header) {
  const size_t method_end = header.find(' ');
  const std::string_view method = std::string_view(header).substr(0, method_end);
  if (method_end == header.npos || (method != "GET" && method != "HEAD")) return false;
  const std::string_view rest = std::string_view(header).substr(method_end + 1);
  const std::string_view path = rest.substr(0, rest.find_first_of(" ?\r\n"));
  const bool has_body = strcasestr(header.c_str(), "\ncontent-length") != nullptr ||
                        strcasestr(header.c_str(), "\ntransfer-encoding") != nullptr;
  return !has_body && (path == "/health" || path == "/v1/health" || path == "/metrics");
}

}  // namespace

Overflow::Overflow(SSL_CTX* tls, Handler answer, std::function<void()> idle)
    : tls_(tls),
      answer_(std::move(answer)),
      idle_(std::move(idle)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_ < 0) fail(ErrorCode::kRuntime, "can't make an eventfd: {}", std::strerror(errno));
  try {
    thread_ = std::thread([this] { run(); });
  } catch (...) {
    ::close(wake_);
    throw;
  }
}

Overflow::~Overflow() {
  stopping_ = true;
  eventfd_write(wake_, 1);
  thread_.join();
  for (const Client& client : clients_) close(client);
  for (const int socket : new_) ::close(socket);
  ::close(wake_);
}

void Overflow::take(int socket) {
  try {
    const std::lock_guard lock(mutex_);
    new_.push_back(socket);
  } catch (const std::bad_alloc&) {
    ::close(socket);
    return;
  }
  eventfd_write(wake_, 1);
}

void Overflow::close(const Client& client) {
  if (client.ssl != nullptr) SSL_free(client.ssl);
  if (client.socket >= 0) ::close(client.socket);
}

void Overflow::take_new() {
  std::vector<int> sockets;
  {
    const std::lock_guard lock(mutex_);
    sockets.swap(new_);
  }
  for (const int socket : sockets) {
    if (clients_.size() == kMostClients) {
      close(clients_.front());
      clients_.pop_front();
    }
    Client client;
    client.socket = socket;
    client.until = Clock::now() + kHeaderTime;
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
    if (tls_ != nullptr) {
      client.ssl = SSL_new(tls_);
      if (client.ssl == nullptr) {  // out of memory; must not fall back to plain text
        ::close(socket);
        continue;
      }
      SSL_set_fd(client.ssl, socket);
    }
    clients_.push_back(std::move(client));
  }
}

void Overflow::run() {
  std::vector<pollfd> watched;
  while (!stopping_) {
    watched.assign(1, {wake_, POLLIN, 0});
    for (const Client& client : clients_) watched.push_back({client.socket, POLLIN, 0});
    ::poll(watched.data(), watched.size(), kLookEvery);
    idle_();
    eventfd_t n = 0;
    (void)!eventfd_read(wake_, &n);
    const auto now = Clock::now();
    size_t i = 1;
    for (auto at = clients_.begin(); at != clients_.end(); ++i) {
      bool done = watched[i].revents != 0 && step(*at);
      if (!done && now > at->until) {
        done = at->refused;
        if (!done) refuse(*at);
      }
      if (done) close(*at);
      at = done ? clients_.erase(at) : std::next(at);
    }
    take_new();
  }
}

bool Overflow::shake_hands(Client& client) {
  ERR_clear_error();
  const int result = SSL_accept(client.ssl);
  client.shook_hands = result == 1;
  if (client.shook_hands) return true;
  const int error = SSL_get_error(client.ssl, result);
  return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

/// As ::recv(): -1 with EAGAIN if there is no more now.
long Overflow::receive(Client& client, char* data, size_t size) {
  if (client.ssl == nullptr || !client.shook_hands) return ::recv(client.socket, data, size, 0);
  ERR_clear_error();
  const int n = SSL_read(client.ssl, data, static_cast<int>(size));
  if (n > 0) return n;
  const int error = SSL_get_error(client.ssl, n);
  if (error == SSL_ERROR_ZERO_RETURN) return 0;
  errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : EIO;
  return -1;
}

bool Overflow::step(Client& client) {
  if (client.ssl != nullptr && !client.shook_hands && !client.refused) {
    if (!shake_hands(client)) return true;
    if (!client.shook_hands) return false;
  }
  char part[4096];
  for (int i = 0; i < 64; ++i) {  // others have their turn too
    const long n = receive(client, part, sizeof(part));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno != EAGAIN && errno != EWOULDBLOCK;
    if (n == 0) return true;
    if (client.refused) continue;
    client.received.append(part, static_cast<size_t>(n));
    if (decide(client)) return true;
  }
  return false;
}

bool Overflow::decide(Client& client) {
  const bool whole = client.received.find("\r\n\r\n") != std::string::npos;
  if (!whole && client.received.size() < kMostHeader) return false;
  if (!whole || !asks_for_state(client.received)) {
    refuse(client);
    return false;
  }
  try {
    answer_(std::exchange(client.socket, -1), std::exchange(client.ssl, nullptr),
            std::move(client.received));
  } catch (const std::exception&) {  // out of memory; the connection is closed by now
  }
  return true;
}

void Overflow::refuse(Client& client) {
  if (client.ssl == nullptr) {
    (void)!::send(client.socket, kRefusal.data(), kRefusal.size(), MSG_NOSIGNAL);
  } else if (client.shook_hands) {
    ERR_clear_error();
    SSL_write(client.ssl, kRefusal.data(), static_cast<int>(kRefusal.size()));
  }
  ::shutdown(client.socket, SHUT_WR);
  client.refused = true;  // closing with unread bytes would reset the connection, answer included
  client.received = std::string();
  client.until = Clock::now() + kClosingTime;
}

}  // namespace snapkv::server
