// SPDX-License-Identifier: MIT
// Whether a value fits a JSON schema: the keywords that tools' parameters are described with.
#pragma once

#include "chat/json.h"

namespace snapkv::chat {

/// `type`, `enum`, `const`, `nullable`, `properties`, `required`, `additionalProperties`, `items`,
/// `anyOf`, `oneOf` (as anyOf), `allOf` and references inside `schema` are respected; all other
/// keywords are ignored. Schemas that take too many steps are not fitted.
bool fits_schema(const Json& value, const Json& schema);

}  // namespace snapkv::chat
