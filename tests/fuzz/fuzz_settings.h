// SPDX-License-Identifier: MIT
// What the fuzz target of settings and its replay share.
#pragma once

#include <string>
#include <string_view>

namespace snapkv::test {

/// Reads a command line and a configuration file as the command does before it begins to work: each
/// line before the first NUL is an argument, what follows is the file. Returns the error's message
/// as a terminal gets it; empty without one. Anything but an Error is for the caller to see.
std::string read_hostile_settings(std::string_view bytes);

}  // namespace snapkv::test
