// SPDX-License-Identifier: MIT
// Copies of model files with hostile metadata: texts with terminal commands, which no command of
// the program may pass on, and more keys than any model has.
#pragma once

#include <string>
#include <string_view>

namespace snapkv::test {

/// A title, a colour, a C1 control character and a mark that changes the direction of writing. The
/// program itself writes none of them.
inline constexpr std::string_view kHostileText =
    "\x1b]0;owned\x07\x1b[35m\x1b[2J\xc2\x9b"
    "35m\xe2\x80\xae";

/// Writes `to`, a copy of the file `from` with hostile names, keys, vocabulary pieces and chat
/// template, some of them a megabyte long. A failure ends the test program.
void write_hostile_text_model(const std::string& from, const std::string& to);

/// Writes `to`, a copy of the file `from` with n_more additional number keys ("more.0", ...).
void write_model_of_many_keys(const std::string& from, const std::string& to, int n_more);

}  // namespace snapkv::test
