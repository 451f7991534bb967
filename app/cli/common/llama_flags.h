// SPDX-License-Identifier: MIT
// llama.cpp's options on our command line: what has a counterpart becomes that, what changes
// nothing here is accepted, anything else is refused by name with the reason. Without this "-ngl
// 99" would be read as "-n gl". Called by command_line.cpp before the arguments are parsed.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace snapkv::cli {

/// The arguments (without the program's name) as the parser is to see them. Options that the
/// command has itself are left alone, with their values. Throws Error{kUsage} for an option of
/// llama.cpp that does not apply, naming it and why.
std::vector<std::string> translate_llama_flags(const CLI::App& root,
                                               const std::vector<std::string>& args);

}  // namespace snapkv::cli
