// SPDX-License-Identifier: MIT
// ConnectionPool: one thread for each open connection, up to a limit, and up to another one for
// connections from the same address. Threads are reused, and end when there is nothing to do.
// httplib's own pool has a fixed number of threads, and connections beyond it wait unanswered.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace snapkv::server {

class ConnectionPool {
 public:
  /// Makes a thread that runs the function; throws if the system refuses one.
  using ThreadMaker = std::function<std::thread(std::function<void()>)>;

  struct Limits {
    size_t connections = 0;
    size_t of_address = 0;                                     ///< connections from one address
    std::chrono::milliseconds idle = std::chrono::seconds(5);  ///< then a thread ends
  };

  explicit ConnectionPool(
      const Limits& limits,
      ThreadMaker make_thread = [](auto run) { return std::thread(std::move(run)); });

  /// Runs `serve` in a thread of its own. Returns false, without running it, beyond the limits or
  /// if no thread can be made. `address`: of the client.
  bool enqueue(std::function<void()> serve, const std::string& address);
  /// Waits until all connections are closed.
  void shutdown();
  size_t n_threads() const;

 private:
  using Threads = std::list<std::thread>;
  struct Waiting {
    std::function<void()> serve;
    std::string address;
  };

  bool take(std::function<void()> serve, const std::string& address);
  void run(Threads::iterator self);
  void end(const std::string& address);

  const Limits limits_;
  const ThreadMaker make_thread_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // guarded by mutex_
  std::deque<Waiting> waiting_;
  Threads threads_, ended_;
  size_t n_open_ = 0;  // connections that are served or waiting for their thread
  std::map<std::string, size_t> n_of_address_;
  bool shutdown_ = false;
};

}  // namespace snapkv::server
