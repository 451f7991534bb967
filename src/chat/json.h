// SPDX-License-Identifier: MIT
// JSON of conversations. Objects keep the order of their members, because chat templates show it to
// models.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace snapkv::chat {

using Json = nlohmann::ordered_json;

/// Limits on nesting and on the members of one object in a request. Ordered objects are searched
/// from the beginning, so many members would take quadratic time.
inline constexpr int kMostJsonDepth = 100;
inline constexpr int kMostJsonMembers = 4096;
/// Limit on all strings, arrays and objects together: an empty one takes about 30 times the bytes
/// of its text. Numbers do not count, because prompts are lists of them.
inline constexpr int kMostJsonParts = 1 << 18;

/// What a text would take to parse, as far as can be seen before anything is built from it.
/// Whether it is valid JSON is left to the parser.
struct JsonExtent {
  std::string excess;  ///< why it would take too much; empty if it is fine
  int n_parts = 0;     ///< strings, arrays and objects
  size_t n_commas = 0;
};
JsonExtent extent_of(std::string_view text);

/// Parses JSON text within a request, an answer or a file. The result is_discarded() if it is not
/// JSON or exceeds the limits.
Json parse_held(std::string_view text);

/// Appends part of a JSON string; parts may begin and end inside a character.
void append_escaped(std::string& json, std::string_view text);

/// Returns the JSON on one line; bytes that are not UTF-8 become U+FFFD.
std::string to_text(const Json& json);

}  // namespace snapkv::chat
