// SPDX-License-Identifier: MIT
#include "server/scheduler/job.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace snapkv::server {

bool Job::done() const {
  return !answers.empty() && std::all_of(answers.begin(), answers.end(),
                                         [](const RunningAnswer& a) { return a.done(); });
}

int n_answers(const Jobs& jobs) {
  int n = 0;
  for (const auto& job : jobs) n += job->request.n;
  return n;
}

Failure timed_out(const Job& job) {
  return {Failure::Kind::timeout,
          fmt::format("the request was not done after {:g} seconds", job.request.timeout)};
}

void fail_job(Job& job, Failure::Kind kind, const std::string& message, SchedulerStats& counts) {
  ++counts.n_failed;
  job.failed = true;
  job.client->push(Failure{kind, message});
}

bool end_if_lost(Job& job, SchedulerStats& counts) {
  if (job.failed) return true;
  if (job.client->cancelled()) {
    ++counts.n_cancelled;
    job.client->push(Failure{Failure::Kind::cancelled, "cancelled by the client"});
    return true;
  }
  if (!job.expired()) return false;
  const Failure failure = timed_out(job);
  fail_job(job, failure.kind, failure.message, counts);
  return true;
}

void cancel_all(Jobs& jobs) {
  for (const auto& job : jobs) {
    job->client->push(Failure{Failure::Kind::cancelled, "the server is stopping"});
  }
  jobs.clear();
}

void list_jobs(const Jobs& jobs, SlotInfo::State state, std::vector<SlotInfo>& slots) {
  for (const auto& job : jobs) {
    SlotInfo info;
    info.id = job->id;
    info.state = state;
    info.request = job->request.id;
    info.policy = job->request.session.kv.name;
    info.n_tokens = prompt_tokens(job->request);
    info.bytes = job->memory.bytes().running + job->memory.bytes().reading;
    slots.push_back(std::move(info));
  }
}

double compress_seconds(const Session& session) {
  return session.stats().score_seconds + session.stats().gather_seconds;
}

}  // namespace snapkv::server
