// SPDX-License-Identifier: MIT
// The options of `snapkv serve`, and their translation into the server's own.
#pragma once

#include <optional>
#include <string>

#include "cli/common/chat_settings.h"
#include "cli/common/cli_types.h"
#include "cli/common/settings.h"
#include "long_documents/plan.h"
#include "server/api/api_options.h"
#include "server/http/http_server.h"
#include "server/request_engine.h"
#include "server/service.h"

namespace snapkv::cli {

struct ServeSettings {
  ModelSettings model;
  CacheSettings cache;
  SamplerConfig sampler = {.seed = SamplerConfig::kRandomSeed};
  int64_t n_ctx = 0;
  ChatSettings chat;
  server::HttpOptions http;
  std::string alias;
  std::string api_key, api_key_file;
  double timeout = 0;
  int n_parallel = server::SchedulerOptions{}.n_parallel;
  int max_queue = server::SchedulerOptions{}.max_queue;
  double prefill_share = server::SchedulerOptions{}.prefill_share;
  uint64_t kv_memory = 0;
  std::optional<uint64_t> prefix_cache;
  std::optional<uint64_t> body_memory;
  std::string reuse = "refresh";
  std::string snapshot_dir;
  std::string tool_calls = "auto";
  long_documents::LongMode long_mode = long_documents::LongMode::refuse;
};

void add_serve_options(CLI::App& app, ServeSettings& settings);

/// These throw Error for settings that can't work.
server::HttpOptions http_options(const ServeSettings& settings);
server::ServiceOptions service_options(const ServeSettings& settings);
server::SchedulerOptions scheduler_options(const ServeSettings& settings, const ModelInfo& model);
/// Bytes for the bodies of requests.
uint64_t body_memory(const ServeSettings& settings, uint64_t kv_memory);
/// Throws Error{kDoesNotFit} if not even the shortest request fits. `options`: with the sizes in
/// force.
void check_kv_memory(const Model& model, const server::SchedulerOptions& options);
server::ApiOptions api_options(const ServeSettings& settings, const Model& model);

}  // namespace snapkv::cli
