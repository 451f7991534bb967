// SPDX-License-Identifier: MIT
#include "server/scheduler/queue.h"

#include <fmt/core.h>

#include <chrono>

namespace snapkv::server {

RequestQueue::RequestQueue(const Limits& limits, size_t free_bytes) : limits_(limits) {
  load_.free_bytes = free_bytes;
}

/// Throws Refused if the request would have to wait and the queue is full. Needs mutex_.
void RequestQueue::take_place(const Request& request, size_t needed) {
  const bool begins = n_waiting_ == 0 && !load_.is_reading &&
                      load_.n_running + request.n <= limits_.n_parallel &&
                      needed <= load_.free_bytes;
  if (begins) {
    n_beginning_ = 1;
  } else if (n_waiting_ - n_beginning_ >= limits_.max_queue) {
    ++stats_.n_refused;
    throw Refused(Refused::Kind::queue_full,
                  fmt::format("{} requests are waiting or begin already, --max-queue is {}",
                              n_waiting_, limits_.max_queue),
                  1);
  }
}

void RequestQueue::add(std::unique_ptr<Job> job, size_t needed) {
  {
    const std::lock_guard lock(mutex_);
    if (draining_ || stopping_) {
      throw Refused(Refused::Kind::draining, "the server is stopping");
    }
    take_place(job->request, needed);
    job->id = next_id_++;
    ++n_waiting_;
    idle_ = false;
    submitted_.push_back(std::move(job));
  }
  changed_.notify_all();
}

int64_t RequestQueue::next_id() {
  const std::lock_guard lock(mutex_);
  return next_id_++;
}

void RequestQueue::drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
}

bool RequestQueue::draining() const {
  const std::lock_guard lock(mutex_);
  return draining_;
}

bool RequestQueue::idle() const {
  const std::lock_guard lock(mutex_);
  return idle_;
}

SchedulerStats RequestQueue::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void RequestQueue::add_task(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) throw Refused(Refused::Kind::draining, "the server has stopped");
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
}

void RequestQueue::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
}

void RequestQueue::begin() {
  const std::lock_guard lock(mutex_);
  thread_ = std::this_thread::get_id();
}

bool RequestQueue::is_schedulers_thread() const {
  const std::lock_guard lock(mutex_);
  return thread_ == std::this_thread::get_id();
}

bool RequestQueue::wait(bool busy) {
  std::unique_lock lock(mutex_);
  if (!busy) {
    // requests that only wait for a timeout or for their client are checked now and then
    changed_.wait_for(lock, std::chrono::milliseconds(100),
                      [&] { return stopping_ || !submitted_.empty() || !tasks_.empty(); });
  }
  return !stopping_;
}

void RequestQueue::run_tasks() {
  std::deque<std::function<void()>> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
  }
  for (const auto& task : tasks) task();
}

void RequestQueue::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  run_tasks();
}

Jobs RequestQueue::take() {
  const std::lock_guard lock(mutex_);
  has_taken_ = !submitted_.empty();
  return std::exchange(submitted_, {});
}

void RequestQueue::publish(const SchedulerStats& counts, const Load& load) {
  const std::lock_guard lock(mutex_);
  const int64_t n_refused = stats_.n_refused;
  stats_ = counts;
  stats_.n_refused = n_refused;
  load_ = load;
  n_waiting_ = load.n_waiting + static_cast<int>(submitted_.size());
  if (has_taken_) n_beginning_ = 0;
  idle_ = load.idle && submitted_.empty();
}

}  // namespace snapkv::server
