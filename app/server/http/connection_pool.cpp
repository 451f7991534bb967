// SPDX-License-Identifier: MIT
#include "server/http/connection_pool.h"

#include <utility>

namespace snapkv::server {
namespace {

thread_local bool t_refusing = false;

}  // namespace

bool ConnectionPool::refusing() { return t_refusing; }

void ConnectionPool::enqueue(std::function<void()> serve) {
  {
    const std::lock_guard lock(mutex_);
    if (n_open_ < limit_) {
      waiting_.push_back(std::move(serve));
      // threads_.size() - n_open_ threads are idle
      if (++n_open_ > threads_.size()) threads_.emplace_back([this] { run(); });
      changed_.notify_one();
      return;
    }
  }
  t_refusing = true;
  serve();
  t_refusing = false;
}

void ConnectionPool::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return shutdown_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::function<void()> serve = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    serve();
    lock.lock();
    --n_open_;
  }
}

void ConnectionPool::shutdown() {
  {
    const std::lock_guard lock(mutex_);
    shutdown_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace snapkv::server
