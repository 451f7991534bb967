// SPDX-License-Identifier: MIT
// Answers of Anthropic's Messages API: a list of content blocks (thinking, text, tool_use), plain
// or as events.
#pragma once

#include <memory>

#include "server/api/answers.h"

namespace snapkv::server {

std::unique_ptr<Answers> make_message_answers(AnswerOptions options);

}  // namespace snapkv::server
