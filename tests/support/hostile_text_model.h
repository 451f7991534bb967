// SPDX-License-Identifier: MIT
// Copies of model files with hostile metadata: texts that want to command a terminal, which no
// command may hand on, and more keys than any model has.
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

/// Writes `to`, the file `from` with n_more keys of a number each ("more.0", ...).
void write_model_of_many_keys(const std::string& from, const std::string& to, int n_more);

}  // namespace snapkv::test
