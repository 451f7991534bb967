// SPDX-License-Identifier: MIT
// The contents of --help: the options that most people need, and examples; --help-all shows every
// option.
#pragma once

#include <string>

#include "cli/common/cli_types.h"

namespace snapkv::cli {

/// Returns example command lines as lines of help text; empty for a command without any. `command`
/// is its whole name: "generate", "eval needle".
std::string help_examples(const std::string& command);

/// Returns the first of them, as it is typed; empty for a command without any.
std::string first_example(const std::string& command);

/// Hides the less common options of a command from its help text, which then says how many there
/// are. Commands with few options show all.
void hide_uncommon_options(CLI::App& command);

}  // namespace snapkv::cli
