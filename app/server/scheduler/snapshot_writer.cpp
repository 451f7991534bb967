// SPDX-License-Identifier: MIT
// The scheduler's thread: snapshots. It reads their prompts; another thread compresses and writes
// their files.
#include <algorithm>
#include <utility>

#include "server/scheduler/failure_kind.h"
#include "server/scheduler/loop.h"

namespace snapkv::server {

/// Hands the job over: until snapshot_written() only the writer's thread uses it, and its bytes
/// stay reserved.
void Scheduler::Loop::write_snapshot(std::unique_ptr<Job> owned) {
  Job& job = *owned;
  if (job.document) {
    job.reading_bytes = job.document->bytes();
    memory_.reading() += job.reading_bytes;
  }
  writing_.push_back(std::move(owned));
  auto write = [this, &job] {
    std::optional<Failure> failure;
    const Clock::time_point begin = Clock::now();
    try {
      if (job.client->cancelled()) {
        failure = Failure{Failure::Kind::cancelled, "cancelled by the client"};
      } else if (job.expired()) {
        failure = timed_out(job);
      } else {
        write_file(job);
      }
    } catch (const std::exception& e) {
      failure = Failure{failure_kind(e), failure_text(e)};
    }
    const double seconds = seconds_since(begin);
    add_task([this, &job, failure, seconds] { snapshot_written(job, failure, seconds); });
  };
  if (model_->on_device()) {  // see use_session()
    write();
  } else {
    writer_.add(std::move(write));
  }
}

/// Runs in the writer's thread.
void Scheduler::Loop::write_file(const Job& job) {
  documents_.forget(job.snapshot_path);
  if (job.document) {
    job.document->save(job.snapshot_path, stored_kv_type(model_->info()), job.snapshot_notes,
                       job.request.zstd_level);
  } else {
    job.sessions[0]->save(job.snapshot_path, job.snapshot_notes, job.request.zstd_level);
  }
}

void Scheduler::Loop::snapshot_written(Job& job, const std::optional<Failure>& failure,
                                       double seconds) {
  if (!failure) {
    AnswerEnd end;
    end.seconds = seconds;
    job.client->push(std::move(end));
  } else if (failure->kind == Failure::Kind::cancelled) {
    ++counts_.n_cancelled;
    job.client->push(*failure);
  } else {
    fail_job(job, failure->kind, failure->message);
  }
  release(job);
  writing_.remove_if([&](const std::unique_ptr<Job>& other) { return other.get() == &job; });
}

}  // namespace snapkv::server
