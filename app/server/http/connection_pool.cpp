// SPDX-License-Identifier: MIT
#include "server/http/connection_pool.h"

#include <exception>
#include <utility>

namespace snapkv::server {

ConnectionPool::ConnectionPool(const Limits& limits, ThreadMaker make_thread)
    : limits_(limits), make_thread_(std::move(make_thread)) {}

bool ConnectionPool::enqueue(std::function<void()> serve, const std::string& address) {
  Threads ended;
  bool taken = false;
  {
    const std::lock_guard lock(mutex_);
    ended.splice(ended.end(), ended_);
    taken = take(std::move(serve), address);
  }
  for (std::thread& thread : ended) thread.join();  // they have nothing left to do
  return taken;
}

bool ConnectionPool::take(std::function<void()> serve, const std::string& address) {
  if (n_open_ == limits_.connections) return false;
  try {
    size_t& n_of_address = n_of_address_[address];
    if (n_of_address == limits_.of_address) return false;
    waiting_.push_back({std::move(serve), address});
    const size_t n_idle = threads_.size() - n_open_;
    if (n_idle == 0) {
      const auto self = threads_.emplace(threads_.end());
      try {
        *self = make_thread_([this, self] { run(self); });
      } catch (...) {
        threads_.erase(self);
        waiting_.pop_back();
        if (n_of_address == 0) n_of_address_.erase(address);
        throw;
      }
    }
    ++n_of_address;
  } catch (const std::exception&) {  // no thread or no memory for another connection
    return false;
  }
  ++n_open_;
  changed_.notify_one();
  return true;
}

void ConnectionPool::run(Threads::iterator self) {
  std::unique_lock lock(mutex_);
  while (true) {
    const bool has_work =
        changed_.wait_for(lock, limits_.idle, [&] { return shutdown_ || !waiting_.empty(); });
    if (waiting_.empty()) {
      if (!has_work) ended_.splice(ended_.end(), threads_, self);  // the next call joins it
      return;
    }
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    try {
      next.serve();
    } catch (const std::exception&) {  // out of memory; the connection is closed by now
    }
    lock.lock();
    end(next.address);
  }
}

void ConnectionPool::end(const std::string& address) {
  --n_open_;
  const auto found = n_of_address_.find(address);
  if (--found->second == 0) n_of_address_.erase(found);
}

void ConnectionPool::shutdown() {
  Threads all;
  {
    const std::lock_guard lock(mutex_);
    shutdown_ = true;
    all.splice(all.end(), ended_);
  }
  changed_.notify_all();
  for (std::thread& thread : all) thread.join();
  // from here on no thread leaves this list
  for (std::thread& thread : threads_) thread.join();
}

size_t ConnectionPool::n_threads() const {
  const std::lock_guard lock(mutex_);
  return threads_.size();
}

}  // namespace snapkv::server
