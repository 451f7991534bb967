// SPDX-License-Identifier: MIT
// Translates llama.cpp's options: one with a counterpart here becomes that, one that has no effect
// here is accepted, and any other is refused by name with the reason. Without this, "-ngl 99" would
// be read as "-n gl".
#pragma once

#include <string>
#include <vector>

#include "cli/common/cli_types.h"

namespace snapkv::cli {

/// Returns the arguments (without the program's name) for the parser. The command's own options and
/// their values are left alone. Throws Error{kUsage} for an option of llama.cpp that does not
/// apply, naming it and the reason.
std::vector<std::string> translate_llama_flags(const CLI::App& root,
                                               const std::vector<std::string>& args);

/// The long names that are taken from llama.cpp, for "did you mean ...".
std::vector<std::string> usable_llama_flags();

}  // namespace snapkv::cli
