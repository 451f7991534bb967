// SPDX-License-Identifier: MIT
// The tools that requests offer to the model (chat/tools.h).
#pragma once

#include <functional>
#include <string>

#include "chat/tools.h"
#include "server/api/api_options.h"
#include "server/api/fields.h"

namespace snapkv::server {

using chat::ToolFormat;
using chat::Tools;

/// Reads `tools`, `tool_choice` and `parallel_tool_calls` of chat completions.
Tools read_tools(const Fields& body);

/// Adds a function whose schema is in `schema_field`. Throws if that is not a schema.
void add_tool(Tools& tools, const Fields& function, const char* schema_field);
/// Makes `function` required. Throws if it is not one of the tools.
void choose_function(Tools& tools, const Fields& body, const std::string& function);
/// `parallel_tool_calls`. Where nothing is said, a function that must be called is called once.
void read_parallel(Tools& tools, const Fields& body);
/// What OpenAI's `tool_choice` says: nothing, none, auto, required, a function or custom tool,
/// whose name `function_name` reads from the object, or allowed_tools. After read_parallel().
void read_tool_choice(Tools& tools, const Fields& body,
                      const std::function<std::string(const Fields& choice)>& function_name);

/// `tool_calls`: "auto" or "strict", the form that calls must have; the server's --tool-calls if it
/// is not given. For every API.
void read_call_form(Tools& tools, const Fields& body, const ApiOptions& options);

/// Returns a new id for a call; Mistral's templates require nine letters or digits.
std::string tool_call_id(ToolFormat format);

}  // namespace snapkv::server
