// SPDX-License-Identifier: MIT
#include "server/scheduler/snapshot_writer.h"

#include <utility>

#include "server/scheduler/failure_kind.h"
#include "snapkv/prefill.h"

namespace snapkv::server {

void SnapshotWriter::write(std::unique_ptr<Job> owned) {
  Job& job = *owned;
  if (job.document) store_.hold(job.memory, {.reading = job.document->bytes()});
  jobs_.push_back(std::move(owned));
  auto write = [this, &job] {
    const Clock::time_point begin = Clock::now();
    const std::optional<Failure> failure = write_file(job);
    const double seconds = seconds_since(begin);
    queue_.add_task([this, &job, failure, seconds] { written(job, failure, seconds); });
  };
  if (model_->on_device()) {  // its sessions may only be used in the scheduler's thread
    write();
  } else {
    files_.add(std::move(write));
  }
}

std::optional<Failure> SnapshotWriter::write_file(const Job& job) {
  if (job.client->cancelled()) return Failure{Failure::Kind::cancelled, "cancelled by the client"};
  if (job.expired()) return timed_out(job);
  try {
    documents_.forget(job.snapshot_path);
    if (job.document) {
      job.document->save(job.snapshot_path, stored_kv_type(model_->info()), job.snapshot_notes);
    } else {
      job.sessions[0]->save(job.snapshot_path, job.snapshot_notes);
    }
  } catch (const std::exception& e) {
    return Failure{failure_kind(e), failure_text(e)};
  }
  return std::nullopt;
}

void SnapshotWriter::written(Job& job, const std::optional<Failure>& failure, double seconds) {
  if (!failure) {
    AnswerEnd end;
    end.seconds = seconds;
    job.client->push(std::move(end));
  } else if (failure->kind == Failure::Kind::cancelled) {
    ++counts_.n_cancelled;
    job.client->push(*failure);
  } else {
    fail_job(job, failure->kind, failure->message, counts_);
  }
  jobs_.remove_if([&](const std::unique_ptr<Job>& other) { return other.get() == &job; });
}

}  // namespace snapkv::server
