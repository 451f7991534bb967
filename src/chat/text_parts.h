// SPDX-License-Identifier: MIT
// White space and incomplete marks, for answers that arrive in parts.
#pragma once

#include <algorithm>
#include <string_view>

namespace snapkv::chat {

/// JSON's white space.
inline constexpr std::string_view kSpaces = " \n\t\r";

inline bool is_space(char c) { return kSpaces.find(c) != std::string_view::npos; }

/// Returns how many of the last bytes of `text` may be the beginning of `mark`, but not all of it.
inline size_t begun_mark(std::string_view text, std::string_view mark) {
  size_t n = std::min(text.size(), mark.size() - 1);
  while (n > 0 && !mark.starts_with(text.substr(text.size() - n))) --n;
  return n;
}

}  // namespace snapkv::chat
