// SPDX-License-Identifier: MIT
// Conversations of requests, whichever format the client used, as chat/conversation.h has them.
#pragma once

#include "chat/answer_parser.h"
#include "chat/conversation.h"
#include "server/api/context.h"
#include "server/api/exchange.h"
#include "server/api/tools.h"

namespace snapkv::server {

using chat::AnswerSyntax;
using chat::Conversation;

/// Reads the messages of a chat completion. The parts of a content become one text; arguments of
/// tool calls become objects, as templates expect them.
Json read_messages_field(const Fields& body, const char* name);

/// Returns the text of a content: a string, or an array of parts whose types are in `text_types`.
/// Throws for other parts, naming them.
std::string content_text(const Fields& owner, const char* name,
                         std::initializer_list<std::string_view> text_types);

/// Reads chat_template_kwargs.
Json read_template_variables(const Fields& body);

/// `continue_final_message` and `add_generation_prompt`: whether the answer goes on with a last
/// message of the assistant, as it does where neither is given.
bool read_begins_turn(const Fields& body);

/// Renders the conversation with the model's template, up to where the answer begins or goes on.
/// Adds to `warnings` what the template could only be given in another form.
RenderedChat render(const Conversation& conversation, const ApiContext& context,
                    std::vector<std::string>& warnings);

/// Renders it into the request, with the grammar that tool_choice requires, and returns how to
/// parse the answer.
AnswerSyntax prepare(const Conversation& conversation, const ApiContext& context, Request& request);

}  // namespace snapkv::server
