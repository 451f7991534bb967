// SPDX-License-Identifier: MIT
// Job: a request from waiting, through reading its prompt, to writing its answers.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/scheduler/answer.h"
#include "server/generation.h"
#include "server/scheduler/kept_sessions.h"
#include "server/scheduler/prefix_store.h"

namespace snapkv::server {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Job {
  int64_t id = 0;
  Request request;
  std::shared_ptr<Generation> client;
  std::optional<GrammarMatcher> matcher;  // for request.grammar, at its beginning
  std::string snapshot_path;              // file for its cache; empty: none
  std::string snapshot_notes;

  Clock::time_point submitted = Clock::now(), began = submitted, reported = submitted;
  bool alone = false;   // not read together with others, since that failed
  bool failed = false;  // its client has been told

  // for reading
  std::vector<std::unique_ptr<Session>> sessions;  // [request.n], until the answers take them
  std::vector<int32_t> tokens;  // of the prompt or, in a kept session, the new ones
  PrefixStore::Match prefix;
  int64_t n_total = 0;  // tokens of the prompt, including a document
  int64_t n_reused = 0;
  bool makes_prefix = false;
  std::shared_ptr<const KvPrefix> document;  // all rows of a snapshot
  double compress_seconds_before = 0;        // of a kept session
  std::vector<AnswerPart::Token> scores;     // of the prompt's tokens, where they are wanted

  std::vector<Answer> answers;
  int64_t most_tokens = 0;   // limit of each answer
  int64_t paid_tokens = 0;   // of each answer, tokens that `running_bytes` has room for
  size_t running_bytes = 0;  // reserved until the job is done
  size_t reading_bytes = 0;  // reserved until its prompt is read
  size_t prefix_bytes = 0;   // the same for the prefix that it makes

  bool expired() const { return request.timeout > 0 && seconds_since(submitted) > request.timeout; }
  bool done() const {
    return !answers.empty() &&
           std::all_of(answers.begin(), answers.end(), [](const Answer& a) { return a.done(); });
  }
};

inline Failure timed_out(const Job& job) {
  return {Failure::Kind::timeout,
          fmt::format("the request was not done after {:g} seconds", job.request.timeout)};
}

}  // namespace snapkv::server
