// SPDX-License-Identifier: MIT
// JSON schemas as grammars.
#pragma once

#include <string>
#include <string_view>

#include "text/grammar/gbnf_parser.h"

namespace snapkv::grammar {

/// GBNF for the documents that a schema allows; docs/grammar.md lists the supported keywords.
/// Throws Error{kUsage} "NAME: PLACE: ..." if this is not a schema or not supported.
std::string schema_to_gbnf(std::string_view schema, const std::string& name);

/// The limits of grammars made from schemas: lengths and numbers of items may be larger.
ParseLimits schema_limits();

}  // namespace snapkv::grammar
