// SPDX-License-Identifier: MIT
// unescape: the value of a string literal in a template.
#pragma once

#include <string>
#include <string_view>

namespace snapkv::jinja {

/// The text between the quotes with Python's escapes replaced: \n, \x41, \u00e9, \U0001f600, \101
/// and the others. A backslash before any other character stays. The two \u of a surrogate pair
/// become one character. Throws Error{kUsage} "line N: ..." for escapes that are cut short, name no
/// character or are not supported (\N{...}).
std::string unescape(std::string_view literal, int line);

}  // namespace snapkv::jinja
