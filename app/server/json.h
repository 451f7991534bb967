// SPDX-License-Identifier: MIT
// JSON of requests and answers. Objects keep the order of their members, because chat templates
// show it to models.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace snapkv::server {

using Json = nlohmann::ordered_json;

/// Limits on nesting and on the members of one object in a request. Ordered objects are searched
/// from the beginning, so many members would take quadratic time.
inline constexpr int kMostJsonDepth = 100;
inline constexpr int kMostJsonMembers = 4096;
/// Limit on all strings, arrays and objects together: an empty one takes about 30 times the bytes
/// of its text. Numbers do not count, because prompts are lists of them.
inline constexpr int kMostJsonParts = 1 << 18;

/// Parses JSON text within a request, an answer or a file. The result is_discarded() if it is not
/// JSON or exceeds the limits of a body.
Json parse_held(std::string_view text);

/// The most bytes that a request takes from parsing this text to the tokens of its prompt. Throws
/// as parse_body() does for unreasonable texts.
size_t parsing_bytes(std::string_view text);

/// Parses a request's body, which must be an object. Throws ApiError (400) naming the mistake.
Json parse_body(std::string_view text);

/// Returns the JSON on one line; bytes that are not UTF-8 become U+FFFD.
std::string to_text(const Json& json);

/// Names a value's type for error messages: "a string", "a number", "null".
const char* kind_of(const Json& value);

}  // namespace snapkv::server
