// SPDX-License-Identifier: MIT
// ApiContext: what is needed to read a request: the engine, and the server's options. It lives as
// long as the engine.
#pragma once

#include "server/api/api_options.h"
#include "server/request_engine.h"

namespace snapkv::server {

struct ApiContext {
  RequestEngine& engine;
  const ApiOptions& options;

  const Model& model() const { return engine.model(); }
};

}  // namespace snapkv::server
