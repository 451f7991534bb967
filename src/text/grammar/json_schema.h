// SPDX-License-Identifier: MIT
// JSON schemas as grammars.
#pragma once

#include <string>
#include <string_view>

#include "snapkv/grammar.h"
#include "text/grammar/gbnf_parser.h"

namespace snapkv::grammar {

/// GBNF of the documents that a schema allows; docs/grammar.md says which keywords there are.
/// Throws Error{kUsage} "NAME: PLACE: ..." for what is not a schema; for what is not supported as
/// well, where `relaxation` is null.
std::string schema_to_gbnf(std::string_view schema, const std::string& name,
                           SchemaRelaxation* relaxation = nullptr);

/// The limits of grammars made from schemas: lengths and numbers of items may be larger.
ParseLimits schema_limits();

}  // namespace snapkv::grammar
