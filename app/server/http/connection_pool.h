// SPDX-License-Identifier: MIT
// ConnectionPool: a thread for each open connection, up to a limit; threads are reused. httplib's
// own pool has a fixed number of threads, behind which any number of connections waits unanswered.
// Used by HttpServer.
#pragma once

#include <httplib.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace snapkv::server {

class ConnectionPool : public httplib::TaskQueue {
 public:
  explicit ConnectionPool(size_t most_connections) : limit_(most_connections) {}

  /// Runs `serve` in a thread of its own; beyond the limit in this one, with refusing() true, which
  /// must then take no time.
  void enqueue(std::function<void()> serve) override;
  /// Waits until all connections are closed.
  void shutdown() override;

  /// Whether the connection that this thread serves is one too many.
  static bool refusing();

 private:
  void run();

  const size_t limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;
  size_t n_open_ = 0;  // connections that are served or wait for their thread
  bool shutdown_ = false;
};

}  // namespace snapkv::server
