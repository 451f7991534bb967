// SPDX-License-Identifier: MIT
// Loop: the scheduler's thread. Only it touches sessions, except those lent to another thread while
// a file is written or read. Each round takes new requests from the queue, admits those that fit,
// makes one decode step for all answers, and reads prompts for the time that --prefill-share
// allows. What is done in a round is its parts' work; all of them are this thread's.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "server/document_store.h"
#include "server/request_engine.h"
#include "server/scheduler/admission.h"
#include "server/scheduler/grammar_cache.h"
#include "server/scheduler/queue.h"
#include "server/scheduler/reader.h"
#include "server/scheduler/snapshot_writer.h"
#include "server/scheduler/store.h"
#include "server/scheduler/writer.h"

namespace snapkv::server {

class Loop {
 public:
  /// `options` have the sizes in force. The references must outlive this.
  Loop(const std::shared_ptr<const Model>& model, const SchedulerOptions& options,
       RequestQueue& queue, GrammarCache& grammars, DocumentStore& documents);
  /// Stops the queue, and cancels the requests that are left.
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // for tasks, which run in this thread
  Store& store() { return store_; }
  std::vector<SlotInfo> slots() const;

 private:
  void run();
  /// Runs one round; returns whether there is more to do now.
  bool round();
  void take_new_jobs();
  void begin_reading();
  void read_for(double seconds);
  bool memory_comes_back() const;
  void publish();
  void end();

  const SchedulerOptions& options_;
  RequestQueue& queue_;
  SchedulerStats counts_;
  Store store_;
  Admission admission_;
  Reader reader_;
  Writer writer_;
  SnapshotWriter snapshots_;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace snapkv::server
