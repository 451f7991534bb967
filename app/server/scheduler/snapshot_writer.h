// SPDX-License-Identifier: MIT
// SnapshotWriter: documents whose prompts have been read, and that go into files. Another thread
// compresses and writes these; this class is for the scheduler's.
#pragma once

#include <memory>
#include <optional>

#include "server/document_store.h"
#include "server/request_engine.h"
#include "server/scheduler/file_writer.h"
#include "server/scheduler/job.h"
#include "server/scheduler/queue.h"
#include "server/scheduler/store.h"

namespace snapkv::server {

class SnapshotWriter {
 public:
  /// The references must outlive this.
  SnapshotWriter(std::shared_ptr<const Model> model, DocumentStore& documents, Store& store,
                 RequestQueue& queue, SchedulerStats& counts)
      : model_(std::move(model)),
        documents_(documents),
        store_(store),
        queue_(queue),
        counts_(counts) {}

  /// Takes a job with a file's path. When the file is written or has failed, a task of the queue
  /// tells its client. Until then its bytes stay reserved.
  void write(std::unique_ptr<Job> job);
  /// Waits for the file that is being written; no other is begun.
  void stop() { files_.stop(); }
  void cancel_all() { server::cancel_all(jobs_); }

  const Jobs& jobs() const { return jobs_; }

 private:
  /// Writes the file of a job, which only the calling thread uses meanwhile. Returns why it could
  /// not be written.
  std::optional<Failure> write_file(const Job& job);
  void written(Job& job, const std::optional<Failure>& failure, double seconds);

  const std::shared_ptr<const Model> model_;
  DocumentStore& documents_;
  Store& store_;
  RequestQueue& queue_;
  SchedulerStats& counts_;
  Jobs jobs_;         // whose files are being written, or wait for that
  FileWriter files_;  // last: its thread uses the members above
};

}  // namespace snapkv::server
