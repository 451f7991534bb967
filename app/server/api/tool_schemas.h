// SPDX-License-Identifier: MIT
// ToolSchemas: turns the schemas of one request's tools into rules of one grammar. There may be
// many large ones, so their total size is limited.
#pragma once

#include <cstddef>
#include <string>

#include "server/json.h"

namespace snapkv::server {

class ToolSchemas {
 public:
  /// Returns GBNF for the JSON documents that a schema allows; the root is the rule `name`, all
  /// others are called NAME-RULE. `label`: the schema's name in messages. Throws Error{kUsage} if
  /// it is not a schema or not supported, or if this and the earlier ones together are too large.
  std::string rules(const Json& schema, const std::string& label, const std::string& name);
  /// Counts rules that were made elsewhere. Throws as rules(); messages begin with `label`.
  void count_made(size_t n_bytes, const std::string& label = "");

 private:
  size_t n_read_ = 0, n_made_ = 0;  // bytes of schemas and of rules
};

}  // namespace snapkv::server
