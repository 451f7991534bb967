// SPDX-License-Identifier: MIT
// Overflow: connections for which there is no place any more. One thread watches all of them and
// waits for none: it answers those that ask how the server is, and refuses the others.
#pragma once

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace snapkv::server {

class Overflow {
 public:
  /// Serves the request whose whole header is `received`; owns the socket and `ssl`.
  using Handler = std::function<void(int socket, SSL* ssl, std::string received)>;

  /// `tls`: null for plain connections; must outlive this. `idle` is called now and then.
  Overflow(SSL_CTX* tls, Handler answer, std::function<void()> idle);
  ~Overflow();
  Overflow(const Overflow&) = delete;
  Overflow& operator=(const Overflow&) = delete;

  /// Owns the socket. May be called by any thread; takes no time.
  void take(int socket);

 private:
  using Clock = std::chrono::steady_clock;

  struct Client {
    int socket = -1;
    SSL* ssl = nullptr;
    bool shook_hands = false;
    bool refused = false;  // and what it still sends is dropped until it closes
    std::string received;
    Clock::time_point until;
  };
  using Clients = std::list<Client>;

  void run();
  void take_new();
  /// Reads what has come; returns whether the client is done with.
  bool step(Client& client);
  bool shake_hands(Client& client);
  long receive(Client& client, char* data, size_t size);
  bool decide(Client& client);
  void refuse(Client& client);
  static void close(const Client& client);

  SSL_CTX* const tls_;
  const Handler answer_;
  const std::function<void()> idle_;
  int wake_ = -1;  // an eventfd
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  std::vector<int> new_;  // guarded by mutex_
  Clients clients_;       // oldest first; of the thread
  std::thread thread_;
};

}  // namespace snapkv::server
