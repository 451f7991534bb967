// SPDX-License-Identifier: MIT
// The regular expressions of `pattern`, as GBNF.
#pragma once

#include <string>
#include <string_view>

namespace snapkv::grammar {

/// An expression for the JSON strings, without their quotes, whose text contains a match of
/// `pattern`; it may use the rule `char`. Messages begin with `place`. Throws Error{kUsage} if
/// `pattern` is not a regular expression or uses something unsupported: look-around, references,
/// word boundaries, properties of Unicode.
std::string pattern_to_gbnf(std::string_view pattern, const std::string& place);

}  // namespace snapkv::grammar
