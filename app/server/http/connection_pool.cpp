// SPDX-License-Identifier: MIT
#include "server/http/connection_pool.h"

#include <exception>
#include <utility>

namespace snapkv::server {
namespace {

thread_local bool t_refusing = false;

}  // namespace

bool ConnectionPool::refusing() { return t_refusing; }

ConnectionPool::ConnectionPool(size_t most_connections, ThreadMaker make_thread)
    : limit_(most_connections), make_thread_(std::move(make_thread)) {}

void ConnectionPool::enqueue(std::function<void()> serve) {
  if (take(serve)) return;
  t_refusing = true;
  serve();
  t_refusing = false;
}

bool ConnectionPool::take(const std::function<void()>& serve) {
  const std::lock_guard lock(mutex_);
  if (n_open_ == limit_) return false;
  try {
    const size_t n_idle = threads_.size() - n_open_;
    if (n_idle == 0) {
      threads_.reserve(n_open_ + 1);  // a running thread must always have a place
      threads_.push_back(make_thread_([this] { run(); }));
    }
    waiting_.push_back(serve);
  } catch (const std::exception&) {  // no thread or no memory for another connection
    return false;
  }
  ++n_open_;
  changed_.notify_one();
  return true;
}

void ConnectionPool::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return shutdown_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::function<void()> serve = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    try {
      serve();
    } catch (const std::exception&) {  // out of memory; the connection is closed by now
    }
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
