// SPDX-License-Identifier: MIT
// RequestRules: which requests this server can serve at all, and what the scheduler decides about
// their sessions. Immutable.
#pragma once

#include <cstddef>
#include <memory>

#include "server/request_engine.h"
#include "server/scheduler/request_plan.h"

namespace snapkv::server {

class RequestRules {
 public:
  RequestRules(std::shared_ptr<const Model> model, const SchedulerOptions& options)
      : model_(std::move(model)), options_(options) {}

  /// Sets all fields of `request.session` except those that the request may choose.
  void complete(Request& request) const;
  /// The same for a session from a file, which says nothing of guessed tokens.
  void complete_saved(Request& request) const;
  /// Plans the memory of a complete request. Throws Refused if it can never be served.
  RequestPlan plan(const Request& request) const;
  /// As RequestEngine::fit().
  PromptFit fit(Request request) const;

 private:
  const std::shared_ptr<const Model> model_;
  const SchedulerOptions options_;
};

}  // namespace snapkv::server
