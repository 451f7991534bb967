// SPDX-License-Identifier: MIT
// Answers of OpenAI's Responses API: a list of output items (reasoning, a message, function calls),
// plain or as its typed events.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "server/api/answers.h"
#include "server/api/response_tools.h"

namespace snapkv::server {

/// `request`: the body, whose settings the response repeats. `names`: what the client calls the
/// functions that the model calls.
std::unique_ptr<Answers> make_response_answers(AnswerOptions options, const Json& request,
                                               std::map<std::string, ResponseToolName> names);

}  // namespace snapkv::server
