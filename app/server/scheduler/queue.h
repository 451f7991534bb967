// SPDX-License-Identifier: MIT
// RequestQueue: where other threads meet the scheduler's. They leave requests and tasks here, and
// read what the scheduler's thread has published. Thread-safe.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

#include "server/request_engine.h"
#include "server/scheduler/job.h"

namespace snapkv::server {

class RequestQueue {
 public:
  struct Limits {
    int n_parallel = 1;  ///< answers being written at the same time
    int max_queue = 0;   ///< waiting requests; those that begin at once are not counted
  };
  /// What the scheduler does at the end of a round. New requests are judged by it.
  struct Load {
    int n_waiting = 0;        ///< requests taken from the queue whose prompt is not being read yet
    int n_running = 0;        ///< answers being written, or whose prompt is read
    bool is_reading = false;  ///< a prompt
    size_t free_bytes = 0;    ///< free, or kept but can be freed
    bool idle = true;         ///< no request waits or runs
  };

  RequestQueue(const Limits& limits, size_t free_bytes);

  // for any thread

  /// Gives the job its id and queues it. Throws Refused if no more requests are taken, or if this
  /// one would have to wait and max_queue others already do. `needed`: bytes that it takes.
  void add(std::unique_ptr<Job> job, size_t needed);
  /// An id that no job and no kept session has.
  int64_t next_id();
  /// Refuses new requests from now on.
  void drain();
  bool draining() const;
  bool idle() const;
  SchedulerStats stats() const;
  /// Leaves a task for the scheduler's thread, which runs it between two rounds. Throws Refused
  /// once that thread has ended.
  void add_task(std::function<void()> task);
  /// Runs `task` in the scheduler's thread, at once if that is the calling thread, and returns its
  /// result or throws its exception.
  template <typename F>
  auto run(F task) {
    if (is_schedulers_thread()) return task();
    std::packaged_task<std::invoke_result_t<F>()> packaged(std::move(task));
    auto result = packaged.get_future();
    add_task([&packaged] { packaged(); });
    return result.get();
  }
  /// Makes wait() return false and refuses new requests.
  void stop();

  // for the scheduler's thread

  /// Makes the calling thread the scheduler's.
  void begin();
  /// Waits for something to do, for a while; not at all if the scheduler is `busy`. Returns false
  /// once it is to stop.
  bool wait(bool busy);
  void run_tasks();
  /// Runs the last tasks: nothing will run those that come later.
  void end();
  /// The requests that have come since the last call, in their order.
  Jobs take();
  /// Publishes the counters, of which n_refused is the queue's own.
  void publish(const SchedulerStats& counts, const Load& load);

 private:
  bool is_schedulers_thread() const;
  void take_place(const Request& request, size_t needed);

  const Limits limits_;

  mutable std::mutex mutex_;  // guards all that follows
  std::condition_variable changed_;
  Jobs submitted_;
  std::deque<std::function<void()>> tasks_;
  bool ended_ = false;
  std::thread::id thread_;
  bool stopping_ = false, draining_ = false;
  bool idle_ = true;
  Load load_;
  int n_waiting_ = 0;       // not yet taken, or in load_.n_waiting
  int n_beginning_ = 0;     // of them, those that the next round will read
  bool has_taken_ = false;  // jobs, in this round
  int64_t next_id_ = 1;
  SchedulerStats stats_;
};

}  // namespace snapkv::server
