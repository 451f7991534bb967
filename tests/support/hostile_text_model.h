// SPDX-License-Identifier: MIT
// Copies of model files with hostile metadata: texts that would control a terminal, which no
// command may pass on, and more keys than any model has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace snapkv::test {

/// A title, a colour, a C1 control and a mark that changes the writing direction; the program
/// itself writes none of these.
inline constexpr std::string_view kHostileText =
    "\x1b]0;owned\x07\x1b[35m\x1b[2J\xc2\x9b"
    "35m\xe2\x80\xae";

/// Copies the file `from` to `to` with hostile names, keys, vocabulary pieces and a chat template,
/// some of them a megabyte long. A failure ends the test program.
void write_hostile_text_model(const std::string& from, const std::string& to);

/// Copies the file `from` to `to` and adds keys with numbers (i32).
void write_model_with_keys(const std::string& from, const std::string& to,
                           const std::vector<std::pair<std::string, int32_t>>& keys);

/// Copies the file `from` to `to` and adds n_more keys with a number each ("more.0", ...).
void write_model_of_many_keys(const std::string& from, const std::string& to, int n_more);

}  // namespace snapkv::test
