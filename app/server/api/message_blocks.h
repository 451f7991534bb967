// SPDX-License-Identifier: MIT
// Blocks of Anthropic's messages as text and messages of the template's kind.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/api/fields.h"

namespace snapkv::server {

/// The text of `system`: a string or blocks. What clients add for accounting, which differs with
/// every request, is left out, which is added to `notes`.
std::string read_system(const Fields& owner, const char* name, std::vector<std::string>& notes);

/// Adds one message; results of tools are messages of their own, in front of it.
void read_message_blocks(const Fields& message, const std::string& role, Json& messages);

/// A `document` block of the messages.
struct MessageDocument {
  std::optional<std::string> title;
  std::string text;
  bool is_citable = false;  ///< the client wants citations of it
};
/// All documents of messages that read_message_blocks() accepts, in their order.
std::vector<MessageDocument> message_documents(const Json& messages);

/// The texts of a request that follow its last `cache_control`; nothing where it has none.
std::optional<std::string> text_after_cache_control(const Json& body);

}  // namespace snapkv::server
