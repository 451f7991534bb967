// SPDX-License-Identifier: MIT
// Prompts in harmony's form (harmony.h): what gpt-oss's template takes of a conversation, and the
// header of the answer where a grammar holds from its first token on: headers have control tokens,
// which are in no grammar.
#pragma once

#include <string>
#include <vector>

#include "chat/json.h"
#include "chat/tools.h"

namespace snapkv::chat {

/// The template shows one call a message, what is said before it as reasoning, and system messages
/// only at the beginning. Several calls become messages of their own, each with its result after
/// it; reasoning and text before a call become one, `thinking`; later system messages become part
/// of the user's, which is added to `warnings`.
void fit_harmony_messages(Json& messages, std::vector<std::string>& warnings);

/// Each call of a message becomes a message of its own, followed by its result.
Json one_call_a_message(const Json& messages);

/// The template needs a description of each tool, and texts as the defaults of choices.
Json harmony_tools(const Json& tools);

/// The template's `reasoning_effort`: what a request may say as one of low, medium and high.
void fit_harmony_effort(Json& variables);

/// What the prompt has after the template's part: the header of a call that must be made, up to
/// where its grammar begins, or that of an answer without reasoning; otherwise nothing.
/// `continues`: the prompt goes on with an answer that has begun.
std::string harmony_opening(const Tools& tools, bool answers_at_once, bool continues);

/// The function that must be called; null where there are several.
const Json* only_function(const Tools& tools);

}  // namespace snapkv::chat
