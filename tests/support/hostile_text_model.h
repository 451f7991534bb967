// SPDX-License-Identifier: MIT
// Copies of model files whose texts want to command a terminal: what no command may hand on.
#pragma once

#include <string>
#include <string_view>

namespace snapkv::test {

/// A title, a colour, a C1 control and a mark that turns the direction of writing; none of them is
/// what the program itself writes.
inline constexpr std::string_view kHostileText =
    "\x1b]0;owned\x07\x1b[35m\x1b[2J\xc2\x9b"
    "35m\xe2\x80\xae";

/// Writes `to`, the file `from` with hostile names, keys, pieces of the vocabulary and a chat
/// template, some of a megabyte. A failure ends the test program.
void write_hostile_text_model(const std::string& from, const std::string& to);

}  // namespace snapkv::test
