// SPDX-License-Identifier: MIT
// ToolSchemas: turns the schemas of one request's tools into rules of one grammar. There may be
// many large ones, so their total size is limited.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "chat/json.h"
#include "snapkv/grammar.h"

namespace snapkv::chat {

/// A grammar with other names for its rules: `name` for the root, NAME-RULE for the others.
std::string with_rules_named(const std::string& gbnf, const std::string& name);

/// One text for a header: "LABEL: uniqueItems (#/properties/tags), ...". At most a few places are
/// named. Empty where nothing was left out.
std::string relaxation_warning(const std::string& label, const SchemaRelaxation& relaxation);

class ToolSchemas {
 public:
  /// GBNF of the JSON documents that a schema allows; its root is the rule `name`, all others are
  /// called NAME-RULE. `label`: what messages call the schema. Throws Error{kUsage} for what is no
  /// schema, and where this and the earlier ones are too large together.
  std::string rules(const Json& schema, const std::string& label, const std::string& name);
  /// Counts rules that were made elsewhere. Throws as rules(); messages begin with `label`.
  void count_made(size_t n_bytes, const std::string& label = "");

  /// What was left out of the schemas since the last call, as a warning; empty: nothing.
  std::string take_warning(const std::string& label);

 private:
  size_t n_read_ = 0, n_made_ = 0;  // bytes of schemas and of rules
  SchemaRelaxation relaxation_;
};

}  // namespace snapkv::chat
