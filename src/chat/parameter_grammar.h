// SPDX-License-Identifier: MIT
// The grammar of calls whose parameters are bare text; ParameterScanner reads such calls.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/call_syntax.h"
#include "chat/field_error.h"
#include "chat/json.h"
#include "chat/tool_schemas.h"

namespace snapkv::chat {

/// A parameter's name, and whether a call must have it.
struct ParameterName {
  std::string name;
  bool is_required = false;
};

/// The parameters of a schema: its `properties`, then what else it requires. Throws FieldError
/// where they can't be written one by one. `called`: the function's name, for messages.
std::vector<ParameterName> parameter_names(const Json& parameters, const std::string& called);
/// The error "'tools': the parameters of CALLED: WHY".
FieldError parameter_error(const std::string& called, const std::string& why);
/// A schema inside `parameters` as a document of its own, with the definitions that it refers to.
Json with_definitions(const Json& schema, const Json& parameters);

/// Rules for a text that ends with the first `mark`, which is part of it: NAME-0 and others. The
/// mark's first character must not be in it again.
std::string marked_text_rules(const std::string& name, std::string_view mark);

/// Returns the rule `name` for a call of this function between tags, from `tags.name_begin` to
/// `tags.end`, and the rules that it needs, except those of parameter_text_rules(). Throws
/// FieldError if the function's parameters can't be written one by one, or if all schemas so far
/// are too large.
std::string parameter_call_rules(const Json& function, const std::string& name,
                                 const ParameterTags& tags, ToolSchemas& schemas);

/// Returns the rules for bare texts, which all calls share.
std::string parameter_text_rules(const ParameterTags& tags);

}  // namespace snapkv::chat
