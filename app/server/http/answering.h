// SPDX-License-Identifier: MIT
// Computes an exchange and sends the answer, plain or as a stream of events, until it is complete
// or the client has gone.
#pragma once

#include <httplib.h>

#include <atomic>

#include "server/api/exchange.h"
#include "server/http/body_memory.h"
#include "server/metrics.h"
#include "server/request_log.h"

namespace snapkv::server {

struct AnsweringContext {
  RequestEngine& engine;
  Metrics& metrics;
  std::atomic<int>& n_active;  ///< answers that are being sent
  double ping_seconds = 30;
  const RequestLog& log;
};

/// What the log calls a request.
std::string log_title(const httplib::Request& request);

/// Submits the exchange. Throws Refused and ApiError; once a stream has begun, errors are sent as
/// events. `share`: of the request's body; given back with the answer's end.
void answer(Exchange exchange, BodyMemory::Share share, const httplib::Request& request,
            httplib::Response& response, const AnsweringContext& context);

}  // namespace snapkv::server
