// SPDX-License-Identifier: MIT
#include "server/http/connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace snapkv::server {
namespace {

constexpr int64_t kLook = 200;  // ms between two checks whether the server is ending

thread_local Connection* t_current = nullptr;

std::chrono::steady_clock::duration time_span(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

void address_of(const sockaddr_storage& storage, std::string& ip, int& port) {
  char text[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(storage);
    inet_ntop(AF_INET, &in.sin_addr, text, sizeof(text));
    port = ntohs(in.sin_port);
  } else if (storage.ss_family == AF_INET6) {
    const auto& in = reinterpret_cast<const sockaddr_in6&>(storage);
    inet_ntop(AF_INET6, &in.sin6_addr, text, sizeof(text));
    port = ntohs(in.sin6_port);
  }
  ip = text;
}

}  // namespace

void Ending::begin() {
  Clock::rep never = kNever;
  since_.compare_exchange_strong(never, Clock::now().time_since_epoch().count());
}

Ending::Clock::time_point Ending::after(double seconds) const {
  const Clock::rep since = since_.load();
  if (since == kNever) return Clock::time_point::max();
  return Clock::time_point(Clock::duration(since)) + time_span(seconds);
}

Connection::Connection(int socket, SSL* ssl, const ConnectionLimits& limits, const Ending& ending,
                       std::string received)
    : socket_(socket), ssl_(ssl), limits_(limits), ending_(ending), buffer_(std::move(received)) {
  fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK);
  const int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // sends tokens without delay
  if (ssl_ != nullptr) SSL_set_fd(ssl_, socket_);
  t_current = this;
}

Connection::~Connection() {
  t_current = nullptr;
  if (ssl_ != nullptr) {
    if (!failed_) SSL_shutdown(ssl_);
    SSL_free(ssl_);
  }
  if (closes_ && !failed_) {
    // closing with unread bytes would reset the connection, and the client would lose the answer
    ::shutdown(socket_, SHUT_WR);
    char rest[16 << 10];
    const auto until = Clock::now() + time_span(limits_.closing_seconds);
    while (wait(POLLIN, until) && recv(socket_, rest, sizeof(rest), 0) > 0) {
    }
  }
  ::close(socket_);
}

Connection* Connection::current() { return t_current; }

bool Connection::wait(short events, Clock::time_point until) const {
  const double ending_seconds = events == POLLIN ? limits_.ending_seconds : limits_.write_seconds;
  while (true) {
    const auto end = std::min(until, ending_.after(ending_seconds));
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left < 0) return false;
    pollfd poll_fd = {socket_, events, 0};
    const int n = poll(&poll_fd, 1, static_cast<int>(std::min<int64_t>(left + 1, kLook)));
    if (n > 0) return true;  // errors appear when reading or writing
    if (n < 0 && errno != EINTR) return false;
  }
}

bool Connection::wait_for_tls(int result, Clock::time_point until) {
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
      return wait(POLLIN, until);
    case SSL_ERROR_WANT_WRITE:
      return wait(POLLOUT, until);
    default:
      return false;
  }
}

bool Connection::accept() {
  if (ssl_ == nullptr) return true;
  const auto until = Clock::now() + time_span(limits_.header_seconds);
  while (true) {
    ERR_clear_error();
    const int result = SSL_accept(ssl_);
    if (result == 1) return true;
    if (!wait_for_tls(result, until)) {
      failed_ = true;
      return false;
    }
  }
}

bool Connection::wait_for_request() {
  const auto until = Clock::now() + time_span(limits_.idle_seconds);
  while (!ending_.begun() && Clock::now() < until) {
    if (n_read_ < buffer_.size() || (ssl_ != nullptr && SSL_pending(ssl_) > 0)) return true;
    if (wait(POLLIN, std::min(until, Clock::now() + std::chrono::milliseconds(kLook)))) return true;
  }
  return false;
}

void Connection::begin_header() {
  in_header_ = true;
  n_header_ = n_header_lines_ = 0;
  phase_end_ = Clock::now() + time_span(limits_.header_seconds);
}

void Connection::begin_body(const std::string& version) {
  in_header_ = false;
  has_interim_answers_ = version == "HTTP/1.1";
  next_sign_ = Clock::now();
  sign_pause_ = time_span(limits_.sign_seconds);
  restart_body();
}

void Connection::restart_body() {
  body_begin_ = Clock::now();
  n_body_ = 0;
  phase_end_ = body_begin_ + time_span(limits_.body_seconds);
}

Connection::Clock::time_point Connection::read_deadline() const {
  if (in_header_) return phase_end_;
  const double allowed = limits_.read_seconds + static_cast<double>(n_body_) / limits_.body_rate;
  return std::min({phase_end_, body_begin_ + time_span(allowed),
                   Clock::now() + time_span(limits_.read_seconds)});
}

short Connection::events() const {
  pollfd poll_fd = {socket_, POLLRDHUP, 0};
  return poll(&poll_fd, 1, 0) > 0 ? poll_fd.revents : short{0};
}

bool Connection::alive() const {
  return !failed_ && (events() & (POLLHUP | POLLERR | POLLNVAL)) == 0;
}

bool Connection::wants_sign() {
  const auto now = Clock::now();
  if (now < next_sign_ || (events() & POLLRDHUP) == 0) return false;
  next_sign_ = now + sign_pause_;
  sign_pause_ *= 4;
  return true;
}

bool Connection::awaits_answer() {
  if (wants_sign()) {
    if (!has_interim_answers_) return false;
    constexpr std::string_view kSign = "HTTP/1.1 100 Continue\r\n\r\n";
    write(kSign.data(), kSign.size());
  }
  return alive();
}

bool Connection::is_readable() const {
  return n_read_ < buffer_.size() || (ssl_ != nullptr && SSL_pending(ssl_) > 0) ||
         wait(POLLIN, read_deadline());
}

ssize_t Connection::receive(char* data, size_t size) {
  const auto until = read_deadline();
  if (Clock::now() > std::min(until, ending_.after(limits_.ending_seconds))) return -1;
  while (true) {
    if (ssl_ != nullptr) {
      ERR_clear_error();
      const int n = SSL_read(ssl_, data, static_cast<int>(size));
      if (n > 0) return n;
      if (SSL_get_error(ssl_, n) == SSL_ERROR_ZERO_RETURN) return 0;
      if (!wait_for_tls(n, until)) return -1;
      continue;
    }
    const ssize_t n = recv(socket_, data, size, 0);
    if (n >= 0) return n;
    if (errno == EINTR) continue;
    if ((errno != EAGAIN && errno != EWOULDBLOCK) || !wait(POLLIN, until)) return -1;
  }
}

ssize_t Connection::read(char* data, size_t size) {
  if (failed_ || read_failed_) return -1;
  if (n_read_ == buffer_.size()) {
    buffer_.resize(16 << 10);
    n_read_ = 0;
    const ssize_t n = receive(buffer_.data(), buffer_.size());
    buffer_.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
    n_body_ += buffer_.size();
    if (n <= 0) {
      read_failed_ = n < 0;
      closes_ = true;
      return n;
    }
  }
  const size_t n = std::min(size, buffer_.size() - n_read_);
  if (in_header_ && (n_header_ += n) > limits_.header_bytes) {
    read_failed_ = closes_ = true;
    return -1;
  }
  std::memcpy(data, buffer_.data() + n_read_, n);
  if (in_header_) n_header_lines_ += static_cast<size_t>(std::count(data, data + n, '\n'));
  n_read_ += n;
  return static_cast<ssize_t>(n);
}

ssize_t Connection::write(const char* data, size_t size) {
  size_t done = 0;
  while (done < size && !failed_) {
    const auto until = Clock::now() + time_span(limits_.write_seconds);
    if (ssl_ != nullptr) {
      ERR_clear_error();
      const int n =
          SSL_write(ssl_, data + done, static_cast<int>(std::min(size - done, size_t{1} << 20)));
      if (n > 0) {
        done += static_cast<size_t>(n);
      } else if (!wait_for_tls(n, until)) {
        failed_ = true;
      }
      continue;
    }
    const ssize_t n = send(socket_, data + done, size - done, MSG_NOSIGNAL);
    if (n >= 0) {
      done += static_cast<size_t>(n);
    } else if (errno != EINTR &&
               ((errno != EAGAIN && errno != EWOULDBLOCK) || !wait(POLLOUT, until))) {
      failed_ = true;
    }
  }
  return failed_ ? -1 : static_cast<ssize_t>(size);
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage storage = {};
  socklen_t size = sizeof(storage);
  if (getpeername(socket_, reinterpret_cast<sockaddr*>(&storage), &size) == 0) {
    address_of(storage, ip, port);
  }
}

void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage storage = {};
  socklen_t size = sizeof(storage);
  if (getsockname(socket_, reinterpret_cast<sockaddr*>(&storage), &size) == 0) {
    address_of(storage, ip, port);
  }
}

}  // namespace snapkv::server
