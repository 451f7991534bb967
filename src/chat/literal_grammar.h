// SPDX-License-Identifier: MIT
// The grammar of calls whose arguments are literals: Gemma 4's (literal_scanner.h), and Python's
// (python_calls.h).
#pragma once

#include <string>

#include "chat/json.h"
#include "chat/tool_schemas.h"

namespace snapkv::chat {

enum class LiteralDialect { gemma, python };

/// Returns the rule `name` for a call of this function, NAME{...} or NAME(...), and the rules that
/// it needs, except those of literal_rules(). Throws FieldError as parameter_call_rules() does.
std::string literal_call_rules(const Json& function, const std::string& name,
                               LiteralDialect dialect, ToolSchemas& schemas);

/// Returns the rules that all calls share.
std::string literal_rules(LiteralDialect dialect);

}  // namespace snapkv::chat
