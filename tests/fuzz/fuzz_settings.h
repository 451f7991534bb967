// SPDX-License-Identifier: MIT
// The fuzz target for settings, for the fuzzer and the replay.
#pragma once

#include <string>
#include <string_view>

namespace snapkv::test {

/// Reads a command line and a configuration file as the program does before it begins to work. Each
/// line before the first NUL is an argument; the rest is the file. Returns the error's message as
/// shown on a terminal; empty if there is none. Exceptions other than Error are passed on.
std::string read_hostile_settings(std::string_view bytes);

}  // namespace snapkv::test
