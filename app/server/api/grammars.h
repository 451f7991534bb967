// SPDX-License-Identifier: MIT
// Grammars of requests: `grammar` (GBNF), `json_schema`, vLLM's `structured_outputs` and
// `guided_*`, and `response_format` or its counterpart in another API (JSON that matches a schema).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/api/fields.h"
#include "snapkv/grammar.h"

namespace snapkv::server {

/// A field that holds {"type": "json_schema", ...}, such as response_format.
struct FormatField {
  const Fields& owner;
  const char* name;
};

/// What `grammar`, `json_schema`, `response_format` or one of `formats`, an API's own names for it,
/// ask for; null for none. Throws where two of them do. What a schema says and a grammar can't is
/// left out and added to `warnings`.
std::shared_ptr<const Grammar> read_grammar(const Fields& body, std::vector<std::string>& warnings,
                                            const std::vector<FormatField>& formats = {});

/// Compiles GBNF. `name`: its name in messages; `field`: the field of the request.
std::shared_ptr<const Grammar> compile_grammar(const std::string& gbnf, const std::string& name,
                                               const char* field);
/// The same for rules made of tools' schemas.
std::shared_ptr<const Grammar> compile_tool_grammar(const std::string& gbnf);

}  // namespace snapkv::server
