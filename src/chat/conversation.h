// SPDX-License-Identifier: MIT
// Conversation: messages and tools as in OpenAI's chat completions, and the prompts that chat
// templates make of them.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "chat/document.h"
#include "chat/json.h"
#include "chat/tools.h"
#include "snapkv/chat.h"

namespace snapkv::chat {

struct Conversation {
  Json messages = Json::array();  ///< {"role", "content": string, "tool_calls", "tool_call_id"}
  Tools tools;
  Json template_variables = Json::object();  ///< chat_template_kwargs of the request
  bool splits_reasoning = true;              ///< reasoning_format: it is separate from the answer
  bool answers_at_once = false;  ///< without reasoning: a grammar may hold from the first token on
  bool begins_turn = false;  ///< the answer does not go on with a last message of the assistant
};

/// What a conversation does not say itself.
struct ConversationDefaults {
  /// For conversations without tools, and with them; empty if the model has none.
  const std::optional<ChatTemplate>& plain;
  const std::optional<ChatTemplate>& with_tools;
  const Json& variables;      ///< of the templates
  const std::string& system;  ///< for conversations without a system message; empty: none
};

/// Returns the template for a conversation; null if the model has none. Calls in earlier answers
/// need the template for tools if the other one can't write them, whether or not tools are offered.
const ChatTemplate* template_of(const Conversation& conversation,
                                const ConversationDefaults& defaults);

/// Renders the conversation with its template, of which there must be one, up to where the answer
/// begins or goes on. Adds to `warnings` what the template could only be given in another form.
/// Throws FieldError for what can't be rendered, and Error as ChatTemplate::render().
RenderedChat render(const Conversation& conversation, const ConversationDefaults& defaults,
                    std::vector<std::string>& warnings);

/// Renders the conversation as the continuation of a document. Throws as render().
RenderedChat render_after(const Document& document, const Conversation& conversation);

}  // namespace snapkv::chat
