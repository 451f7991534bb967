// SPDX-License-Identifier: MIT
// Metrics: the content of /metrics in Prometheus' text format: the scheduler's counters and gauges,
// and histograms that the routes fill. Thread-safe.
#pragma once

#include <prometheus/histogram.h>

#include <string>

#include "server/request_engine.h"

namespace snapkv::server {

class Metrics {
 public:
  Metrics();

  void observe_first_token(double seconds) { first_token_.Observe(seconds); }
  void observe_token(double seconds) { per_token_.Observe(seconds); }

  /// In Prometheus' text format.
  std::string text(const SchedulerStats& stats) const;

 private:
  prometheus::Histogram first_token_, per_token_;
};

}  // namespace snapkv::server
