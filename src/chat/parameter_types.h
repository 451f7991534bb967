// SPDX-License-Identifier: MIT
// The types of a parameter whose value a model writes as bare text, according to its function's
// schema.
#pragma once

#include <string>

#include "chat/json.h"

namespace snapkv::chat {

/// JSON types as bits. Whole numbers are `kInteger`, all others `kFraction`.
using JsonTypes = unsigned;
inline constexpr JsonTypes kString = 1, kInteger = 2, kFraction = 4, kBoolean = 8, kNull = 16,
                           kObject = 32, kArray = 64, kAllTypes = 127;

/// Returns the types of the values that a schema allows, according to `type`, `enum`, `const`,
/// `anyOf`, `oneOf`, `allOf` and references inside `document`.
JsonTypes schema_types(const Json& schema, const Json& document);

/// Returns the type of a value, as all bits that it counts as: 5.0 is a whole number too.
JsonTypes types_of(const Json& value);

/// Returns the schema that a reference inside `document` refers to; other schemas unchanged.
const Json& resolved(const Json& schema, const Json& document);

/// Returns the schema of one parameter; without one, a schema that allows everything.
const Json& parameter_schema(const Json& parameters, const std::string& name);

/// Returns a value written as bare text as JSON: the text itself if it is JSON of one of these
/// types (Python's True, False and None count as JSON's words), else a string with the text.
std::string typed_value(const std::string& text, JsonTypes types);

}  // namespace snapkv::chat
