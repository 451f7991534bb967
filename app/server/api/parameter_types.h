// SPDX-License-Identifier: MIT
// The types of a parameter whose value a model writes as bare text, by the schema of its function.
// Used by what reads such calls and by what makes grammars for them.
#pragma once

#include <string>

#include "server/json.h"

namespace snapkv::server {

/// Types of JSON, as bits. Whole numbers are `kInteger`, all others `kFraction`.
using JsonTypes = unsigned;
inline constexpr JsonTypes kString = 1, kInteger = 2, kFraction = 4, kBoolean = 8, kNull = 16,
                           kObject = 32, kArray = 64, kAllTypes = 127;

/// The types of the values that a schema allows, as far as `type`, `enum`, `const`, `anyOf`,
/// `oneOf`, `allOf` and references inside `document` say.
JsonTypes schema_types(const Json& schema, const Json& document);

/// What a schema that is a reference inside `document` refers to; the schema itself otherwise.
const Json& resolved(const Json& schema, const Json& document);

/// The schema of one parameter; one that allows everything where there is none.
const Json& parameter_schema(const Json& parameters, const std::string& name);

/// A value that was written as bare text, as JSON: the text itself where it is JSON of one of these
/// types (Python's True, False and None are as good as JSON's words), a string of it otherwise.
std::string typed_value(const std::string& text, JsonTypes types);

}  // namespace snapkv::server
