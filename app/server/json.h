// SPDX-License-Identifier: MIT
// JSON of requests and answers. Objects keep the order of their members, which chat templates show
// to models.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace snapkv::server {

using Json = nlohmann::ordered_json;

/// Nesting and members of one object that a request may have. Objects that keep an order are
/// searched from their beginning, so that many members would take quadratic time.
inline constexpr int kMostJsonDepth = 100;
inline constexpr int kMostJsonMembers = 4096;
/// Strings, arrays and objects that it may have in all: an empty one takes about 30 times the bytes
/// of its text. Numbers are not counted: prompts are lists of them.
inline constexpr int kMostJsonParts = 1 << 18;

/// The value that a text within a request, an answer or a file holds. is_discarded() says that it
/// is no JSON, or more than a body may have.
Json parse_held(std::string_view text);

/// Parses a request's body, which must be an object. Throws ApiError (400) that says what is wrong.
Json parse_body(std::string_view text);

/// As text, in one line; bytes that are no UTF-8 become U+FFFD.
std::string to_text(const Json& json);

/// What a value is, for error messages: "a string", "a number", "null".
const char* kind_of(const Json& value);

}  // namespace snapkv::server
