// SPDX-License-Identifier: MIT
// The grammar of calls whose parameters are bare text (ParameterScanner reads them). Used by
// tool_grammar().
#pragma once

#include <string>

#include "server/json.h"

namespace snapkv::server {

/// The rule `name`, for what follows "<function=" in a call of this function up to "</function>",
/// and the rules that it needs, those of parameter_text_rules() excepted. Throws ApiError where the
/// function's parameters can't be written one by one.
std::string parameter_call_rules(const Json& function, const std::string& name);

/// The rules of bare texts, which all calls share.
std::string parameter_text_rules();

/// GBNF with other names for its rules: `name` for the root, NAME-RULE for the others.
std::string with_rules_named(const std::string& gbnf, const std::string& name);

}  // namespace snapkv::server
