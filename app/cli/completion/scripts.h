// SPDX-License-Identifier: MIT
// Completion scripts for shells and the manual page, made from the command line itself.
#pragma once

#include <string>

#include "cli/common/cli_types.h"

namespace snapkv::cli {

/// The scripts complete commands, tasks and options; values are completed as file names.
std::string bash_completion(const CLI::App& root);
/// For a file _snapkv in a folder of zsh's $fpath.
std::string zsh_completion(const CLI::App& root);
std::string fish_completion(const CLI::App& root);

/// snapkv(1) in roff, with every command and option.
std::string manual_page(const CLI::App& root);

}  // namespace snapkv::cli
