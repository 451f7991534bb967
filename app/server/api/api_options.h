// SPDX-License-Identifier: MIT
// ApiOptions: settings of the server that the API's formats need.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "long_documents/plan.h"
#include "server/json.h"
#include "snapkv/engine.h"

namespace snapkv::server {

struct ApiOptions {
  std::string model_name;  ///< --alias, else the name of the model's file
  int64_t created = 0;     ///< time when the model was loaded, in seconds since 1970
  /// Defaults of requests.
  SessionOptions session;
  SamplerConfig sampler;
  /// Returns a policy with the settings of the command line and the model's file.
  std::function<PolicyConfig(const std::string& policy)> policy;
  /// For requests without tools, and with them; empty if the model has none.
  std::optional<ChatTemplate> chat_template, tool_template;
  bool any_call_form = true;  ///< calls may have the form of another template (chat/call_forms.h)
  Json template_variables = Json::object();  ///< bos_token, eos_token, --chat-template-kwargs
  std::string system;                        ///< for conversations without a system message
  std::string snapshot_dir;                  ///< empty: none
  /// What is done with documents that are longer than the context, where a request does not say it.
  long_documents::LongMode long_mode = long_documents::LongMode::refuse;
  double timeout = 0;  ///< time limit of a request in seconds; 0: none
};

}  // namespace snapkv::server
