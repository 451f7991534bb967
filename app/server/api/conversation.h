// SPDX-License-Identifier: MIT
// Conversation: messages and tools as in OpenAI's chat completions, whichever format the client
// used, prepared for the model's template.
#pragma once

#include "server/api/context.h"
#include "server/api/exchange.h"
#include "server/api/tools.h"

namespace snapkv::server {

struct Conversation {
  Json messages = Json::array();  ///< {"role", "content": string, "tool_calls", "tool_call_id"}
  Tools tools;
  Json template_variables = Json::object();  ///< chat_template_kwargs of the request
  bool splits_reasoning = true;              ///< reasoning_format: it is separate from the answer
  bool begins_turn = false;  ///< the answer does not go on with a last message of the assistant
};

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
