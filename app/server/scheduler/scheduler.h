// SPDX-License-Identifier: MIT
// Scheduler: computes the requests of all clients with one model, in one thread. A decode step
// serves every answer that is being written; prompts are read in slices between the steps, so that
// answers keep flowing. Finished sessions are kept, so that a conversation's next request reads
// only what is new; so are beginnings that many prompts share. Memory is counted before it is
// allocated. docs/server.md explains what users see.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/document_store.h"
#include "server/request_engine.h"
#include "server/scheduler/grammar_cache.h"
#include "server/scheduler/loop.h"
#include "server/scheduler/queue.h"
#include "server/scheduler/request_rules.h"
#include "server/scheduler/slot_files.h"

namespace snapkv::server {

class Scheduler : public RequestEngine {
 public:
  Scheduler(std::shared_ptr<const Model> model, const SchedulerOptions& options);
  /// Cancels the requests that are left.
  ~Scheduler() override = default;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  const Model& model() const override { return *model_; }
  const SchedulerOptions& options() const override { return options_; }
  std::shared_ptr<RequestUpdates> submit(Request request) override;
  std::shared_ptr<RequestUpdates> make_snapshot(Request request, const std::string& path,
                                                const std::string& notes) override;
  PromptFit fit(Request request) const override { return rules_.fit(std::move(request)); }
  DocumentStore& documents() override { return documents_; }
  void drain() override { queue_.drain(); }
  bool draining() const override { return queue_.draining(); }
  bool idle() const override { return queue_.idle(); }
  std::vector<SlotInfo> slots() const override;
  void save_slot(int64_t id, const std::string& path) override { slot_files_.save(id, path); }
  int64_t restore_slot(const std::string& path) override { return slot_files_.restore(path); }
  void erase_slot(int64_t id) override { slot_files_.erase(id); }
  SchedulerStats stats() const override { return queue_.stats(); }

 private:
  std::shared_ptr<RequestUpdates> add(std::unique_ptr<Job> job);
  void add_matcher(Job& job);

  const std::shared_ptr<const Model> model_;
  const SchedulerOptions options_;
  const RequestRules rules_;
  DocumentStore documents_;
  GrammarCache grammars_;
  mutable RequestQueue queue_;
  Loop loop_;  // after what its thread uses
  SlotFiles slot_files_;
};

}  // namespace snapkv::server
