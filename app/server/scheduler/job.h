// SPDX-License-Identifier: MIT
// Job: a request from waiting, through reading its prompt, to writing its answers.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/request.h"
#include "server/request_engine.h"
#include "server/scheduler/memory_account.h"
#include "server/scheduler/prefix_store.h"
#include "server/scheduler/request_plan.h"
#include "server/scheduler/running_answer.h"

namespace snapkv::server {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Job {
  int64_t id = 0;
  Request request;
  RequestPlan plan;
  std::shared_ptr<RequestUpdates> client;
  std::optional<GrammarMatcher> matcher;  // for its grammar, at the beginning
  std::string snapshot_path;              // file for its cache; empty: none
  std::string snapshot_notes;

  Clock::time_point submitted = Clock::now(), began = submitted, reported = submitted;
  bool alone = false;   // not read together with others, since that failed
  bool failed = false;  // its client has been told

  Reservation memory;

  // for reading
  std::vector<std::unique_ptr<Session>> sessions;  // [request.n], until the answers take them
  PrefixStore::Match prefix;
  int64_t n_total = 0;  // tokens of the prompt, including a document
  int64_t n_reused = 0;
  bool makes_prefix = false;
  std::shared_ptr<const KvPrefix> document;  // all rows of a snapshot
  double compress_seconds_before = 0;        // of a kept session
  std::vector<AnswerPart::Token> scores;     // of the prompt's tokens, where they are wanted

  std::deque<RunningAnswer> answers;
  int64_t paid_tokens = 0;  // of each answer, tokens that `memory` has room for

  bool expired() const { return request.timeout > 0 && seconds_since(submitted) > request.timeout; }
  /// Whether all answers are written.
  bool done() const;
};

/// Jobs in the order in which they came.
using Jobs = std::list<std::unique_ptr<Job>>;

/// Answers that the jobs write, or will write.
int n_answers(const Jobs& jobs);
Failure timed_out(const Job& job);
/// Tells the client, and counts the failure.
void fail_job(Job& job, Failure::Kind kind, const std::string& message, SchedulerStats& counts);
/// Whether the job has failed, its client has gone or its time is over. Its client has been told.
bool end_if_lost(Job& job, SchedulerStats& counts);
/// Ends jobs because the server stops.
void cancel_all(Jobs& jobs);
/// Adds the jobs to those for /slots.
void list_jobs(const Jobs& jobs, SlotInfo::State state, std::vector<SlotInfo>& slots);

/// Seconds that choosing rows has taken in a session so far.
double compress_seconds(const Session& session);

}  // namespace snapkv::server
