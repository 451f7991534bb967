// SPDX-License-Identifier: MIT
// Fields that clients of OpenAI's and Anthropic's APIs and of llama-server send, that would change
// the answer, and that this server does not have. With the value that changes nothing they are
// accepted, so that clients may send all of their settings; with another one they are refused.
// Fields that say nothing of the answer (user, store, service_tier ...) are ignored as unknown
// ones.
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
