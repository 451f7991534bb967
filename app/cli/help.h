// SPDX-License-Identifier: MIT
// What --help shows of a command: the options that most people want, and examples; --help-all shows
// every option. Used by command_line.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace snapkv::cli {

/// Command lines to begin with, as lines of the help text; empty for a command that has none.
/// `command` is its whole name: "generate", "eval needle".
std::string help_examples(const std::string& command);

/// Leaves the less common options of a command out of its help text, which then says how many there
/// are. Commands of few options keep all.
void hide_uncommon_options(CLI::App& command);

}  // namespace snapkv::cli
