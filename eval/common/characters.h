// SPDX-License-Identifier: MIT
// Kinds of characters of ASCII, whatever the locale.
#pragma once

#include <string_view>

namespace snapkv::eval {

inline constexpr std::string_view kSpace = " \t\r\n\f\v";

inline bool is_space(char c) { return kSpace.find(c) != std::string_view::npos; }

}  // namespace snapkv::eval
