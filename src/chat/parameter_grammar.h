// SPDX-License-Identifier: MIT
// The grammar of calls whose parameters are bare text; ParameterScanner reads such calls.
#pragma once

#include <string>

#include "chat/json.h"
#include "chat/tool_schemas.h"

namespace snapkv::chat {

/// Returns the rule `name` for the text after "<function=" in a call of this function up to
/// "</function>", and the rules that it needs, except those of parameter_text_rules(). Throws
/// FieldError if the function's parameters can't be written one by one, or if all schemas so far
/// are too large.
std::string parameter_call_rules(const Json& function, const std::string& name,
                                 ToolSchemas& schemas);

/// Returns the rules for bare texts, which all calls share.
std::string parameter_text_rules();

}  // namespace snapkv::chat
