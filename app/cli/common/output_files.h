// SPDX-License-Identifier: MIT
// Options that name a file to be written. They are marked when they are added, and checked before
// the command runs, so that no output destroys a file that the command reads.
#pragma once

#include <string>

#include "cli/common/cli_types.h"

namespace snapkv::cli {

enum class OutputKind {
  file,     ///< replaced as a whole
  cache,    ///< replaced as a whole, but only if it is a saved cache
  records,  ///< appended to (eval/common/record_file.h), after a check of its contents
};

/// Marks an option as the name of a file that its command writes, and returns it.
CLI::Option* mark_output(CLI::Option* option, OutputKind kind);
/// Whether an option is marked as an output.
bool is_output(CLI::Option& option);
/// Whether an option names files that its command reads.
bool is_input(CLI::Option& option);

/// Throws Error{kUsage} when an output of the parsed `command` is a file that it reads, under any
/// name, including the configuration file (empty: none) and the parts of its model; when two
/// outputs are the same file; or when one can't be written, as AtomicFile and check_cache_path()
/// do.
void check_output_files(CLI::App& command, const std::string& config_path);

}  // namespace snapkv::cli
