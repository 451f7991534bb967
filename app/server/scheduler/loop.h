// SPDX-License-Identifier: MIT
// Loop: the scheduler's thread. Only it touches sessions, except those lent to another thread while
// a file is written or read. Requests reach it through a queue, other calls as tasks. Each round
// admits the requests that fit, makes one decode step for all answers, and reads prompts for the
// time that --prefill-share allows.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "server/scheduler/file_writer.h"
#include "server/scheduler/job.h"
#include "server/scheduler/memory_account.h"
#include "server/scheduler/request_plan.h"
#include "server/scheduler/scheduler.h"
#include "snapkv/prefill.h"

namespace snapkv::server {

class Scheduler::Loop {
 public:
  Loop(std::shared_ptr<const Model> model, const SchedulerOptions& options);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  const std::shared_ptr<const Model>& model() const { return model_; }
  const SchedulerOptions& options() const { return options_; }

  std::shared_ptr<Generation> submit(Request request, const std::string& snapshot_path,
                                     const std::string& notes);
  PromptFit fit(Request request) const;
  DocumentStore& documents() { return documents_; }
  void drain();
  bool draining() const;
  bool idle() const;
  SchedulerStats stats() const;
  /// Runs `task` in the loop's thread between two rounds (at once if this is that thread), and
  /// returns its result.
  template <typename F>
  auto run(F task) {
    if (std::this_thread::get_id() == thread_.get_id()) return task();
    std::packaged_task<decltype(task())()> packaged(std::move(task));
    auto result = packaged.get_future();
    add_task([&packaged] { packaged(); });
    return result.get();
  }

  // for any thread: files are read and written in the calling thread, or between two rounds
  std::vector<SlotInfo> slots();
  void save_slot(int64_t id, const std::string& path);
  int64_t restore_slot(const std::string& path);
  void erase_slot(int64_t id);

 private:
  using Jobs = std::list<std::unique_ptr<Job>>;

  void add_task(std::function<void()> task);
  /// Runs a task that reads or writes a session's rows while other sessions are decoded. Sessions
  /// in a device's memory may only be used in the loop's thread.
  template <typename F>
  auto use_session(F task) {
    return model_->on_device() ? run(std::move(task)) : task();
  }
  /// Sets all fields of `request.session` except those that the request may choose.
  void complete_options(Request& request) const;
  size_t check(const Request& request) const;
  void take_place(const Request& request, size_t needed);
  GrammarMatcher matcher_of(const Grammar& grammar);
  void drop_grammars();
  void drop_grammars_if_free();

  void run_thread();
  /// Runs one round; returns whether there is more to do now.
  bool round();
  void run_tasks();
  void take_new_jobs();
  void drop_lost_jobs();
  void publish();

  void begin_reading();
  bool admit(Job& job, bool must_be_short);
  void choose_reuse(Job& job);
  void read_for(double seconds);
  void read_step();
  void report_progress();
  void finish_reading();
  void finish_reading(Job& job, size_t index);
  void reading_failed(Failure::Kind kind, const std::string& message);
  void begin_answers(Job& job);
  void write_snapshot(std::unique_ptr<Job> owned);
  void write_file(const Job& job);
  void snapshot_written(Job& job, const std::optional<Failure>& failure, double seconds);
  KvReport report(const Job& job) const;

  bool decode_step();
  void decode(std::vector<Job*>& jobs, std::vector<Answer*>& answers);
  bool pay_for_next_token(Job& job);
  void finish_answers();
  void keep(Job& job);

  std::vector<SlotInfo> list_slots() const;
  KeptSession lend(int64_t id);
  void take_back(KeptSession kept);
  void reserve_for(const SavedSessionFile& file, const std::string& path);
  void release_lent(size_t bytes);
  int64_t add_restored(KeptSession kept, size_t reserved, const std::string& path);

  /// Frees kept sessions and prefixes until `bytes` are free; returns whether that succeeded.
  bool make_room(size_t bytes);
  void release(Job& job);
  void fail_job(Job& job, Failure::Kind kind, const std::string& message);

  const std::shared_ptr<const Model> model_;
  const SchedulerOptions options_;
  DocumentStore documents_;

  std::mutex grammar_mutex_;
  std::shared_ptr<const GrammarVocabulary> vocabulary_;  // made for the first grammar
  std::list<GrammarMatcher> matchers_;                   // most recently used first
  std::atomic<int> n_grammars_ = 0;                      // size of matchers_

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Job>> submitted_;  // guarded by mutex_
  std::deque<std::function<void()>> tasks_;     // guarded by mutex_
  bool stopping_ = false, draining_ = false;    // guarded by mutex_
  bool idle_ = true;                            // guarded by mutex_
  int n_waiting_ = 0;                           // guarded by mutex_: submitted and not yet read
  int n_beginning_ = 0;     // guarded by mutex_: of them, those that the next round will read
  bool has_taken_ = false;  // guarded by mutex_: took jobs in this round
  int n_running_ = 0;  // guarded by mutex_: answers being written, or whose prompt is read
  bool is_reading_ = false;   // guarded by mutex_
  size_t bytes_for_all_ = 0;  // guarded by mutex_: free, or kept but can be freed
  int64_t next_id_ = 1;       // guarded by mutex_
  SchedulerStats stats_;      // guarded by mutex_

  // used by the loop's thread only
  SchedulerStats counts_;
  MemoryAccount memory_;
  PrefixStore prefixes_;
  KeptSessions kept_;
  Jobs waiting_, answering_;
  Jobs reading_;  // the jobs in prefill_
  std::optional<Prefill> prefill_;
  Jobs writing_;              // jobs whose snapshots writer_ has
  std::list<SlotInfo> lent_;  // kept sessions that other threads are writing to files
  size_t lent_bytes_ = 0;     // their bytes, and those of sessions being read from files
  FileWriter writer_;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace snapkv::server
