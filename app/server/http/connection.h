// SPDX-License-Identifier: MIT
// Connection: one client's socket, plain or TLS, in the form that httplib reads and writes. It adds
// protection against slow and hostile clients: time limits for the whole header, for each wait and
// for the whole body, which must also come at a least rate; a size limit for the header; a check
// whether the client is still there. Each connection is used in one thread.
#pragma once

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>

namespace snapkv::server {

struct ConnectionLimits {
  double header_seconds = 15;  ///< from the first byte of a request to the end of its header
  double read_seconds = 15;    ///< waiting for more of a body
  double body_seconds = 300;   ///< for the whole body
  /// Bytes per second at which a body must come, beyond its first read_seconds.
  double body_rate = 16 << 10;
  double write_seconds = 30;   ///< waiting until the client takes more of an answer
  double idle_seconds = 15;    ///< between two requests
  double sign_seconds = 1;     ///< between the first two signs to a client that half-closed
  double ending_seconds = 1;   ///< waiting for more of a request, once the server is ending
  double closing_seconds = 1;  ///< waiting until the client has closed a refused connection
  size_t header_bytes = 64 << 10;
  int requests = 1000;  ///< per connection
};

/// The end of a server, which its connections watch for: a slow client must not delay it.
class Ending {
 public:
  using Clock = std::chrono::steady_clock;

  void begin();
  bool begun() const { return since_.load() != kNever; }
  /// The time this many seconds after the end began; time_point::max() if it has not.
  Clock::time_point after(double seconds) const;

 private:
  static constexpr Clock::rep kNever = Clock::time_point::max().time_since_epoch().count();
  std::atomic<Clock::rep> since_ = kNever;
};

/// httplib's stream, whose virtual functions have other names from its version 0.20 on. No
/// `override`: each is one only with some versions.
class AnyStream : public httplib::Stream {
 public:
  /// Whether the peer is still there.
  virtual bool alive() const = 0;

  virtual bool is_writable() const { return alive(); }  // before 0.20
  virtual bool wait_readable() const { return is_readable(); }
  virtual bool wait_writable() const { return alive(); }
  virtual time_t duration() const { return 0; }  // asked by clients only
};

class Connection : public AnyStream {
 public:
  /// Owns the socket. `ssl`: null for plain connections; owned as well. `ending` must outlive this.
  /// `received`: what was read from the socket before.
  Connection(int socket, SSL* ssl, const ConnectionLimits& limits, const Ending& ending,
             std::string received = "");
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// The connection of this thread; null if it serves none.
  static Connection* current();

  /// Performs the TLS handshake; returns false when it fails.
  bool accept();
  /// Waits for the first byte of a request; returns false if none arrives in time or the server is
  /// ending.
  bool wait_for_request();
  /// Start the time limits of the header, and of the body. `version`: as in the request,
  /// "HTTP/1.1".
  void begin_header();
  void begin_body(const std::string& version);
  /// Starts the body's time limits again: the server has only now begun to read it.
  void restart_body();
  /// Whether the request's header has not been read, or could not be.
  bool in_header() const { return in_header_; }
  /// Lines of the request's header, including the first one and the empty one at the end.
  size_t n_header_lines() const { return n_header_lines_; }

  /// Whether the client is still there. One that has half-closed the connection may be: see below.
  bool alive() const override;
  /// Whether it is time to send something to a client that has closed its side. It may have gone,
  /// or be waiting for its answer; if it has gone, anything sent is answered with a reset. True at
  /// once at first, then at growing intervals.
  bool wants_sign();
  /// alive(), for use before any part of an answer is written: if the client has closed its side,
  /// sends "100 Continue" as the sign. HTTP/1.0 does not have that, so there the client counts as
  /// gone.
  bool awaits_answer();
  /// Ends the connection after this answer.
  void end_after_answer() { ends_ = true; }
  /// Ends it too, while the client may still be sending: the rest of that is not read.
  void close_after_answer() { closes_ = true; }
  bool ends() const { return ends_ || closes_ || failed_; }
  bool ending() const { return ending_.begun(); }

  bool is_readable() const override;
  ssize_t read(char* data, size_t size) override;
  ssize_t write(const char* data, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  using Clock = Ending::Clock;

  short events() const;
  /// Waits until the socket is ready for `events`, or until the time limit: `until`, or what
  /// remains once the server is ending.
  bool wait(short events, Clock::time_point until) const;
  Clock::time_point read_deadline() const;
  ssize_t receive(char* data, size_t size);
  /// Waits for what a TLS call needs; returns false when the call has failed.
  bool wait_for_tls(int result, Clock::time_point until);

  const int socket_;
  SSL* const ssl_;
  const ConnectionLimits limits_;
  const Ending& ending_;
  bool in_header_ = true;
  bool has_interim_answers_ = false;  // HTTP/1.1
  bool ends_ = false, closes_ = false;
  bool read_failed_ = false;  // nothing more is read, but an answer may still be written
  bool failed_ = false;
  Clock::time_point phase_end_;
  Clock::time_point body_begin_;
  size_t n_body_ = 0;  // bytes received since body_begin_
  Clock::time_point next_sign_;
  Clock::duration sign_pause_{};
  size_t n_header_ = 0, n_header_lines_ = 0;
  std::string buffer_;  // received but not yet read
  size_t n_read_ = 0;   // bytes of buffer_ that were read
};

}  // namespace snapkv::server
