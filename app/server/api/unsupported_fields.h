// SPDX-License-Identifier: MIT
// Fields of OpenAI's and Anthropic's APIs and of llama-server that would change the answer and that
// this server does not support. They are accepted with the value that has no effect, so that
// clients may send all their settings, and refused with any other value. Fields that do not affect
// the answer (user, store, service_tier ...) are ignored, as unknown ones are.
#pragma once

#include <string>
#include <vector>

#include "server/api/fields.h"

namespace snapkv::server {

enum class Api { completions, chat, responses, messages };

/// Throws ApiError (400) that names the first such field. What a client can do without, as it only
/// spares tokens, is added to `warnings`.
void refuse_unsupported(const Fields& body, Api api, std::vector<std::string>& warnings);

}  // namespace snapkv::server
