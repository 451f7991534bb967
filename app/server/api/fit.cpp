// SPDX-License-Identifier: MIT
// POST /v1/kv/fit: whether the prompt of a chat or a text completion can be read, and how long it
// may be, before anything is computed.
#include <nlohmann/json.hpp>

#include "server/api/endpoints.h"
#include "server/api/fields.h"

namespace snapkv::server {

Json fit_json(const Json& json, const ApiContext& context) {
  const Fields body(json);
  Exchange exchange =
      body.has("messages") ? read_chat_completion(json, context) : read_completion(json, context);
  if (!exchange.others.empty()) body.refuse("prompt", "one prompt at a time");
  const PromptFit fit = context.engine.fit(std::move(exchange.request));
  return {{"object", "kv.fit"},
          {"fits", fit.n_tokens <= fit.most_tokens},
          {"prompt_tokens", fit.n_tokens},
          {"most_prompt_tokens", fit.most_tokens},
          {"limit", fit.limited_by_memory ? "memory" : "context"},
          {"n_ctx", fit.n_ctx},
          {"n_ctx_train", context.model().info().n_ctx_train}};
}

}  // namespace snapkv::server
