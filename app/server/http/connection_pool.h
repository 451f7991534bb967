// SPDX-License-Identifier: MIT
// ConnectionPool: one thread for each open connection, up to a limit; threads are reused. httplib's
// own pool has a fixed number of threads, and connections beyond it wait unanswered.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace snapkv::server {

class ConnectionPool {
 public:
  /// Makes a thread that runs the function; throws if the system refuses one.
  using ThreadMaker = std::function<std::thread(std::function<void()>)>;

  explicit ConnectionPool(
      size_t most_connections,
      ThreadMaker make_thread = [](auto run) { return std::thread(std::move(run)); });

  /// Runs `serve` in a thread of its own. Beyond the limit, or if no thread can be made, runs it in
  /// the calling thread with refusing() true; it must then take no time.
  void enqueue(std::function<void()> serve);
  /// Waits until all connections are closed.
  void shutdown();

  /// Whether the connection that this thread serves is beyond the limit.
  static bool refusing();

 private:
  bool take(const std::function<void()>& serve);
  void run();

  const size_t limit_;
  const ThreadMaker make_thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;
  size_t n_open_ = 0;  // connections that are served or waiting for their thread
  bool shutdown_ = false;
};

}  // namespace snapkv::server
