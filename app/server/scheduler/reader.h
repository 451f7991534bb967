// SPDX-License-Identifier: MIT
// Reader: the prompts that are being read, one or several together, step by step. For the
// scheduler's thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/request_engine.h"
#include "server/scheduler/admission.h"
#include "server/scheduler/job.h"
#include "server/scheduler/store.h"
#include "snapkv/prefill.h"

namespace snapkv::server {

class Reader {
 public:
  /// The references must outlive this.
  Reader(Store& store, SchedulerStats& counts) : store_(store), counts_(counts) {}

  /// Jobs that are done with reading.
  struct Outcome {
    Jobs read;   ///< their sessions have read the prompts; some may have failed
    Jobs again;  ///< could not be read together, and are to be read one by one
  };

  bool busy() const { return prefill_.has_value(); }
  /// Begins to read prompts; only if not busy(). Returns the jobs that are to be read again.
  Jobs begin(Admission::Group group);
  /// Tells the client of a job whose prompt another server has read.
  void take_read(Job& job);
  /// Reads for about `seconds`, but makes at least one step; only if busy().
  Outcome read_for(double seconds);
  /// Stops reading if the clients of all its jobs have gone or their time is over. Otherwise lost
  /// ones are dropped when the prompts have been read.
  void drop_lost();
  void cancel_all();

  const Jobs& jobs() const { return jobs_; }
  /// Whether rows that can't be dropped now can be once the prompts have been read.
  bool holds_prefix() const;

 private:
  void report_progress();
  Jobs finish();
  void finish(Job& job, size_t index);
  void report_read(Job& job);
  Jobs fail_all(Failure::Kind kind, const std::string& message);

  Store& store_;
  SchedulerStats& counts_;
  Jobs jobs_;  // in prefill_, in the order of its prompts
  std::optional<Prefill> prefill_;
};

}  // namespace snapkv::server
