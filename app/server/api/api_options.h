// SPDX-License-Identifier: MIT
// ApiOptions: what the server was started with, as far as the formats of the API need it. Filled by
// the command `serve`.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "server/json.h"
#include "snapkv/engine.h"

namespace snapkv::server {

struct ApiOptions {
  std::string model_name;  ///< --alias, else the name of the model's file
  int64_t created = 0;     ///< when the model was loaded, in seconds since 1970
  /// Defaults of requests.
  SessionOptions session;
  SamplerConfig sampler;
  std::optional<uint64_t> seed;  ///< not given: another one for every request
  /// A policy with the settings of the command line and of the model's file.
  std::function<PolicyConfig(const std::string& policy)> policy;
  /// For requests without tools, and for those with them; nothing where the model has none.
  std::optional<ChatTemplate> chat_template, tool_template;
  Json template_variables = Json::object();  ///< bos_token, eos_token, --chat-template-kwargs
  std::string system;                        ///< of conversations that have no system message
  std::string snapshot_dir;                  ///< empty: none
  double timeout = 0;                        ///< seconds of a request; 0: none
};

}  // namespace snapkv::server
