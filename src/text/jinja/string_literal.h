// SPDX-License-Identifier: MIT
// unescape: the value of a string in a template. Called by the lexer.
#pragma once

#include <string>
#include <string_view>

namespace snapkv::jinja {

/// What is between the quotes, with Python's escapes replaced: \n, \x41, \u00e9, \U0001f600, \101
/// and the rest; a backslash before another character stays. Two \u of a surrogate pair are one
/// character. Throws Error{kUsage} "line N: ..." for escapes that are cut short, name no character
/// or are not supported (\N{...}).
std::string unescape(std::string_view literal, int line);

}  // namespace snapkv::jinja
