// SPDX-License-Identifier: MIT
// ApiContext: what a request is read with: the engine, and the server's options. Lives as long as
// the engine.
#pragma once

#include "server/api/api_options.h"
#include "server/scheduler.h"

namespace snapkv::server {

struct ApiContext {
  Engine& engine;
  const ApiOptions& options;

  const Model& model() const { return engine.model(); }
};

}  // namespace snapkv::server
