// SPDX-License-Identifier: MIT
// Grammars of requests: `grammar` (GBNF) and `response_format` (JSON, of a schema). Used by the
// formats.
#pragma once

#include <memory>
#include <string>

#include "server/api/fields.h"
#include "snapkv/grammar.h"

namespace snapkv::server {

/// What `grammar` or `response_format` ask for; null for none. Throws where both are there.
std::shared_ptr<const Grammar> read_grammar(const Fields& body);

/// Of `json_schema` or `json_object`: the object {"type", ...} of `response_format` or text.format.
/// `schema_owner`: where the members name and schema are.
std::shared_ptr<const Grammar> format_grammar(const Fields& format, const Fields& schema_owner);

/// Compiles GBNF. `name`: what messages call it; `field`: the request's.
std::shared_ptr<const Grammar> compile_grammar(const std::string& gbnf, const std::string& name,
                                               const char* field);

}  // namespace snapkv::server
