// SPDX-License-Identifier: MIT
// Admission: the requests that wait, and which of them may begin: what each can take over from what
// has been read before, and the memory that it needs. For the scheduler's thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "server/request_engine.h"
#include "server/scheduler/job.h"
#include "server/scheduler/store.h"
#include "snapkv/prefill.h"

namespace snapkv::server {

class Admission {
 public:
  /// What the scheduler does besides.
  struct Running {
    int n_answers = 0;          ///< being written, or whose prompt is read
    bool frees_memory = false;  ///< something holds memory that will be free later
  };
  /// Jobs whose prompts are read together, each with its prompt.
  struct Group {
    Jobs jobs;
    std::vector<PrefillPrompt> prompts;
    Jobs ready = {};  ///< jobs whose prompts another server has read
  };

  /// The references must outlive this.
  Admission(std::shared_ptr<const Model> model, const SchedulerOptions& options, Store& store,
            SchedulerStats& counts)
      : model_(std::move(model)), options_(options), store_(store), counts_(counts) {}

  /// Adds jobs that wait, behind the others.
  void add(Jobs jobs) { waiting_.splice(waiting_.end(), jobs); }
  /// Adds jobs that are to be read again, before the others.
  void put_back(Jobs jobs) { waiting_.splice(waiting_.begin(), jobs); }
  /// Takes the jobs that can be read next: that which has waited longest, and short ones behind it.
  /// Their memory is reserved, and their sessions are there. Empty if none can begin now; jobs that
  /// fail here are told so.
  Group next(Running running);
  /// Ends the jobs whose clients have gone or whose time is over.
  void drop_lost();
  void cancel_all() { server::cancel_all(waiting_); }

  const Jobs& waiting() const { return waiting_; }

 private:
  /// Reserves the memory that a job needs and makes its sessions. Returns what they must read, or
  /// nothing if the job has to wait. `joins`: other prompts, which it must not affect.
  std::optional<PrefillPrompt> admit(Job& job, bool joins, const Running& running);
  /// Makes the job's sessions, using what has already been read of its prompt. Returns the prompt.
  PrefillPrompt begin_prompt(Job& job);
  /// The tokens of a session that continues a kept one, if there is one to continue.
  std::optional<std::vector<int32_t>> continue_kept(Job& job);
  void find_prefix(Job& job);
  void decide_prefix(Job& job);

  const std::shared_ptr<const Model> model_;
  const SchedulerOptions& options_;
  Store& store_;
  SchedulerStats& counts_;
  Jobs waiting_;  // the first has waited longest
};

}  // namespace snapkv::server
