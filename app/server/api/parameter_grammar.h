// SPDX-License-Identifier: MIT
// The grammar of calls whose parameters are bare text (ParameterScanner reads them). Used by
// tool_grammar().
#pragma once

#include <string>

#include "server/api/tool_schemas.h"
#include "server/json.h"

namespace snapkv::server {

/// The rule `name`, for what follows "<function=" in a call of this function up to "</function>",
/// and the rules that it needs, those of parameter_text_rules() excepted. Throws ApiError where the
/// function's parameters can't be written one by one, or all schemas so far are too large.
std::string parameter_call_rules(const Json& function, const std::string& name,
                                 ToolSchemas& schemas);

/// The rules of bare texts, which all calls share.
std::string parameter_text_rules();

}  // namespace snapkv::server
