// SPDX-License-Identifier: MIT
// Answers of OpenAI's Responses API: a list of output items (reasoning, a message, function calls),
// plain or as typed events.
#pragma once

#include <memory>

#include "server/api/answers.h"

namespace snapkv::server {

/// `request`: the body; the response repeats its settings.
std::unique_ptr<Answers> make_response_answers(AnswerOptions options, const Json& request);

}  // namespace snapkv::server
