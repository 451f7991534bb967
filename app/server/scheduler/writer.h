// SPDX-License-Identifier: MIT
// Writer: the answers that are being written. Each step decodes one token for every answer. For the
// scheduler's thread.
#pragma once

#include <memory>
#include <vector>

#include "server/request_engine.h"
#include "server/scheduler/grammar_cache.h"
#include "server/scheduler/job.h"
#include "server/scheduler/store.h"

namespace snapkv::server {

class Writer {
 public:
  /// The references must outlive this.
  Writer(std::shared_ptr<const Model> model, const SchedulerOptions& options, Store& store,
         GrammarCache& grammars, SchedulerStats& counts)
      : model_(std::move(model)),
        options_(options),
        store_(store),
        grammars_(grammars),
        counts_(counts) {}

  /// Takes jobs whose prompts have been read, and chooses each answer's first token.
  void begin(Jobs jobs);
  /// Decodes one token for every answer; returns false if all of them wait for memory.
  /// `memory_comes_back`: answers without a limit of their own may wait for more memory. Otherwise
  /// they end when there is none.
  bool step(bool memory_comes_back);
  /// Ends the jobs that have failed, whose clients have gone or whose time is over.
  void drop_lost();
  void cancel_all() { server::cancel_all(jobs_); }

  const Jobs& jobs() const { return jobs_; }
  int n_grammars() const { return grammars_.size(); }

 private:
  void begin(Job& job);
  void decode(std::vector<Job*>& jobs, std::vector<RunningAnswer*>& answers);
  bool pay_for_next_token(Job& job, bool memory_comes_back);
  void finish();
  void keep(Job& job);

  const std::shared_ptr<const Model> model_;
  const SchedulerOptions& options_;
  Store& store_;
  GrammarCache& grammars_;
  SchedulerStats& counts_;
  Jobs jobs_;
};

}  // namespace snapkv::server
