// SPDX-License-Identifier: MIT
// AttributePath: the argument `attribute` of filters such as map, sort and join. Used by filters.
#pragma once

#include <optional>
#include <vector>

#include "text/jinja/interpreter.h"

namespace snapkv::jinja {

class AttributePath {
 public:
  /// "a.b.0", or an integer; nothing or none: the value itself. Values that are undefined become
  /// `otherwise`.
  explicit AttributePath(const std::optional<Value>& attribute,
                         std::optional<Value> otherwise = std::nullopt);
  Value get(Interpreter& in, Value item) const;

 private:
  std::vector<Value> parts_;
  std::optional<Value> otherwise_;
};

/// What sorting and grouping compare: texts in lower case, unless `case_sensitive`.
Value sort_key(Interpreter& in, Value value, bool case_sensitive);

}  // namespace snapkv::jinja
