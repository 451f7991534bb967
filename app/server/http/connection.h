// SPDX-License-Identifier: MIT
// Connection: one client's socket, plain or TLS, as httplib reads and writes it. It adds what a
// server needs against slow and hostile clients: a time limit for the whole header, for each wait
// and for the whole body, a limit of the header's size, and a look whether the client is still
// there. Made by HttpServer for each accepted socket, used in one thread.
#pragma once

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>

namespace snapkv::server {

struct ConnectionLimits {
  double header_seconds = 15;  ///< from the first byte of a request to the end of its header
  double read_seconds = 15;    ///< for more of a body
  double body_seconds = 300;   ///< for all of a body
  double write_seconds = 30;   ///< until the client takes more of an answer
  double idle_seconds = 15;    ///< between two requests
  double sign_seconds = 1;     ///< between the first two signs to a client that has closed its side
  double ending_seconds = 1;   ///< for more of a request, once the server ends
  size_t header_bytes = 64 << 10;
  int requests = 1000;  ///< of one connection
};

/// The end of a server, which its connections look at: a client that is slow must not hold it up.
class Ending {
 public:
  using Clock = std::chrono::steady_clock;

  void begin();
  bool begun() const { return since_.load() != kNever; }
  /// The time so many seconds after it has begun; never before that.
  Clock::time_point after(double seconds) const;

 private:
  static constexpr Clock::rep kNever = Clock::time_point::max().time_since_epoch().count();
  std::atomic<Clock::rep> since_ = kNever;
};

class Connection : public httplib::Stream {
 public:
  /// Owns the socket. `ssl`: null for plain connections; owned as well. `ending` must outlive this.
  Connection(int socket, SSL* ssl, const ConnectionLimits& limits, const Ending& ending);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// That of this thread; null where none is served.
  static Connection* current();

  /// TLS: the handshake. False when it failed.
  bool accept();
  /// Waits for the first byte of a request; false when none comes in time or the server ends.
  bool wait_for_request();
  /// The header's limits are in force from here on, and the body's from there on. `version`: as in
  /// the request, "HTTP/1.1".
  void begin_header();
  void begin_body(const std::string& version);
  /// The request's header has not been read, or could not be.
  bool in_header() const { return in_header_; }
  /// Lines of the request's header, its first one and the empty one at its end included.
  size_t n_header_lines() const { return n_header_lines_; }

  /// Whether the client is still there. One that has closed its side may be: see below.
  bool alive() const;
  /// The client has closed its side: it may have gone, or wait for its answer. Whoever has gone
  /// answers with a reset to whatever is sent next, so true says that it is time to send something:
  /// at first at once, then after longer and longer times.
  bool wants_sign();
  /// alive(), while nothing of an answer is written: where the client has closed its side, the sign
  /// is "100 Continue". In HTTP/1.0, which has no such thing, it counts as gone.
  bool awaits_answer();
  /// The connection is closed after this answer: what the client sent has not been read to its end.
  void close_after_answer() { closes_ = true; }
  bool closes() const { return closes_ || failed_; }
  bool ending() const { return ending_.begun(); }

  bool is_readable() const override;
  bool is_writable() const override { return alive(); }
  ssize_t read(char* data, size_t size) override;
  ssize_t write(const char* data, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  using Clock = Ending::Clock;

  short events() const;
  /// Waits until the socket is ready for `events`, or the time has come: `until`, or what the end
  /// of the server leaves.
  bool wait(short events, Clock::time_point until) const;
  Clock::time_point read_deadline() const;
  ssize_t receive(char* data, size_t size);
  /// What a TLS call asks to be waited for; false when it has failed.
  bool wait_for_tls(int result, Clock::time_point until);

  const int socket_;
  SSL* const ssl_;
  const ConnectionLimits limits_;
  const Ending& ending_;
  bool in_header_ = true;
  bool has_interim_answers_ = false;  // HTTP/1.1
  bool closes_ = false;
  bool read_failed_ = false;  // nothing more is read, but an answer may still be written
  bool failed_ = false;
  Clock::time_point phase_end_;
  Clock::time_point next_sign_;
  Clock::duration sign_pause_{};
  size_t n_header_ = 0, n_header_lines_ = 0;
  std::string buffer_;  // received, not yet read
  size_t n_read_ = 0;   // of buffer_
};

}  // namespace snapkv::server
