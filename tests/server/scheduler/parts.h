// SPDX-License-Identifier: MIT
// The parts of the scheduler, put together as its loop does, for tests that work with one of them.
// Everything happens in the test's thread.
#pragma once

#include <memory>
#include <utility>

#include "server/scheduler/admission.h"
#include "server/scheduler/grammar_cache.h"
#include "server/scheduler/reader.h"
#include "server/scheduler/request_rules.h"
#include "server/scheduler/store.h"
#include "server/scheduler/writer.h"
#include "tests/server/scheduler_support.h"

namespace snapkv::server {

struct Parts {
  explicit Parts(const SchedulerOptions& given = options_of()) : options(given) {}

  const SchedulerOptions options;
  const RequestRules rules{model(), options};
  SchedulerStats counts;
  Store store{options.kv_memory, *options.prefix_cache};
  GrammarCache grammars{model(), options.grammar_memory};
  Admission admission{model(), options, store, counts};
  Reader reader{store, counts};
  Writer writer{model(), options, store, grammars, counts};

  /// A job as it comes from the queue.
  std::unique_ptr<Job> job(Request request) {
    auto job = std::make_unique<Job>();
    rules.complete(request);
    job->plan = rules.plan(request);
    job->request = std::move(request);
    job->client = std::make_shared<RequestUpdates>();
    return job;
  }

  /// Adds a job to those that wait; returns its client's side.
  std::shared_ptr<RequestUpdates> add(const Request& request) {
    Jobs jobs;
    jobs.push_back(job(request));
    auto client = jobs.front()->client;
    admission.add(std::move(jobs));
    return client;
  }

  /// Admits what can be read next, and reads it to its end.
  Jobs read() {
    admission.put_back(reader.begin(admission.next({})));
    while (reader.busy()) {
      Reader::Outcome outcome = reader.read_for(0);
      admission.put_back(std::move(outcome.again));
      if (!outcome.read.empty()) return std::move(outcome.read);
    }
    return {};
  }

  SchedulerStats stored() const {
    SchedulerStats stats;
    store.count(stats);
    return stats;
  }
};

/// The rows of a text's tokens, of which the first are those of `old`, unless that is null.
inline std::shared_ptr<const KvPrefix> prefix_of(const std::string& text,
                                                 std::shared_ptr<const KvPrefix> old = {}) {
  Session session(model(), request_of("x").session);
  PrefillPrompt prompt;
  prompt.sessions = {&session};
  prompt.tokens = request_of(text).prompt.tokens;
  prompt.makes_prefix = true;
  if (old) prompt.options.n_from_prefix = std::ssize(old->tokens()) - 1;  // the last may differ
  prompt.options.prefix = std::move(old);
  Prefill prefill(std::move(prompt));
  while (!prefill.step()) {
  }
  return prefill.take_prefix();
}

/// The failure that comes next, if one does.
inline std::optional<Failure> next_failure(RequestUpdates& client) {
  const std::optional<Update> update = client.next(0ms);
  const auto* failure = update ? std::get_if<Failure>(&*update) : nullptr;
  return failure != nullptr ? std::optional(*failure) : std::nullopt;
}

}  // namespace snapkv::server
