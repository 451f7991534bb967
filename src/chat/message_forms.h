// SPDX-License-Identifier: MIT
// Conversations rewritten for chat templates that know less: tools, calls and results as plain text
// (the generic format), and system messages as part of the user's.
#pragma once

#include "chat/call_syntax.h"
#include "chat/json.h"

namespace snapkv::chat {

/// Calls of the assistant become text, as `syntax` writes them. `user_results`: messages of tools
/// become the user's, with <tool_response> around each result.
Json calls_as_text(const Json& messages, const CallSyntax& syntax, bool user_results);

/// Describes the tools, and how to call them in this format, at the end of the system message,
/// which is added where there is none.
void describe_tools(Json& messages, const Json& tools, const CallSyntax& syntax);

/// System messages become part of the user's next message (of the last one, where none follows),
/// for templates that have no place for them there. `keeps_first`: all that stand at the beginning
/// become one system message instead.
Json system_as_user(const Json& messages, bool keeps_first);

}  // namespace snapkv::chat
