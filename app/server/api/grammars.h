// SPDX-License-Identifier: MIT
// Grammars of requests: `grammar` (GBNF), `json_schema`, and `response_format` or what another API
// calls it (JSON, of a schema). Used by the formats.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/api/fields.h"
#include "snapkv/grammar.h"

namespace snapkv::server {

/// A field that holds {"type": "json_schema", ...}, as response_format does.
struct FormatField {
  const Fields& owner;
  const char* name;
};

/// What `grammar`, `json_schema`, `response_format` or one of `formats`, an API's own names for it,
/// ask for; null for none. Throws where two of them do. What a schema says and a grammar can't is
/// left out and added to `warnings`.
std::shared_ptr<const Grammar> read_grammar(const Fields& body, std::vector<std::string>& warnings,
                                            const std::vector<FormatField>& formats = {});

/// Compiles GBNF. `name`: what messages call it; `field`: the request's.
std::shared_ptr<const Grammar> compile_grammar(const std::string& gbnf, const std::string& name,
                                               const char* field);
/// The same for rules made of tools' schemas.
std::shared_ptr<const Grammar> compile_tool_grammar(const std::string& gbnf);

}  // namespace snapkv::server
