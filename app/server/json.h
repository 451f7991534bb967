// SPDX-License-Identifier: MIT
// JSON of requests and answers.
#pragma once

#include <string>
#include <string_view>

#include "chat/json.h"

namespace snapkv::server {

using chat::Json;
using chat::kMostJsonDepth;
using chat::kMostJsonMembers;
using chat::kMostJsonParts;
using chat::parse_held;
using chat::to_text;

/// The most bytes that a request takes from parsing this text to the tokens of its prompt. Throws
/// as parse_body() does for unreasonable texts.
size_t parsing_bytes(std::string_view text);

/// Parses a request's body, which must be an object. Throws ApiError (400) naming the mistake.
Json parse_body(std::string_view text);

/// Names a value's type for error messages: "a string", "a number", "null".
const char* kind_of(const Json& value);

}  // namespace snapkv::server
