// SPDX-License-Identifier: MIT
// AttributePath: the argument `attribute` of filters such as map, sort and join.
#pragma once

#include <optional>
#include <vector>

#include "text/jinja/interpreter.h"

namespace snapkv::jinja {

class AttributePath {
 public:
  /// "a.b.0" or an integer; if missing or none, the item itself. Undefined values are replaced by
  /// `otherwise`.
  explicit AttributePath(const std::optional<Value>& attribute,
                         std::optional<Value> otherwise = std::nullopt);
  Value get(Interpreter& in, Value item) const;

 private:
  std::vector<Value> parts_;
  std::optional<Value> otherwise_;
};

/// The key for sorting and grouping: a text in lower case, unless `case_sensitive`.
Value sort_key(Interpreter& in, Value value, bool case_sensitive);

}  // namespace snapkv::jinja
