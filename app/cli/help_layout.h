// SPDX-License-Identifier: MIT
// The layout of --help, which is the same with every version of CLI11.
#pragma once

#include <string>

#include "cli/common/cli_types.h"

namespace snapkv::cli {

/// Lays out the help of `root` and of commands that are added to it afterwards. Lines end where
/// their texts end them.
void set_help_layout(CLI::App& root);

/// Returns the line that says how a command is used: "Usage: snapkv pull [OPTIONS] MODEL". `name`
/// is the command as it is typed, "snapkv pull".
std::string usage_line(const CLI::App& command, const std::string& name);

}  // namespace snapkv::cli
