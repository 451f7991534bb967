// SPDX-License-Identifier: MIT
// The regular expressions of `pattern` as GBNF. Called by SchemaReader.
#pragma once

#include <string>
#include <string_view>

namespace snapkv::grammar {

/// The strings of JSON, without their quotes, whose text has a match of `pattern`: an expression
/// that may use the rule `char`. `place` begins messages. Throws Error{kUsage} for what is no
/// regular expression or not supported: look-around, references, word boundaries, properties of
/// Unicode.
std::string pattern_to_gbnf(std::string_view pattern, const std::string& place);

}  // namespace snapkv::grammar
