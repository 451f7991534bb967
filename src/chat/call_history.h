// SPDX-License-Identifier: MIT
// Calls and results of earlier answers, in the form in which a chat template shows them.
#pragma once

#include <string>
#include <vector>

#include "chat/call_syntax.h"
#include "chat/json.h"
#include "snapkv/chat.h"

namespace snapkv::chat {

/// Messages that say the same as these in a form of which the template shows everything, in its
/// order: templates differ in whether a message with calls may have text, or more than one call,
/// and in whether arguments are an object or its text. Each form is tried with a small
/// conversation. Where the template shows calls in none of them, they become text, as `syntax`
/// writes calls. `variables`: what the template is rendered with. Adds to `warnings` what the
/// template can't show.
Json fit_calls(const ChatTemplate& tmpl, Json variables, const Json& messages,
               const CallSyntax& syntax, std::vector<std::string>& warnings);

/// Gives a template what it wants of the tools beside the variable `tools`: `functions` as a text,
/// with the date, a text in the system message, or, where it fails without them, descriptions and
/// types of all that has none.
void fit_tools(const ChatTemplate& tmpl, const Json& tools, Json& messages, Json& variables);

}  // namespace snapkv::chat
