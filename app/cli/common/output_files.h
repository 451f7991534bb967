// SPDX-License-Identifier: MIT
// Files that a command writes: they are marked where their options are added, and checked by
// command_line.cpp before the command runs, so that none destroys what the command reads.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace snapkv::cli {

enum class OutputKind {
  file,     ///< replaced whole
  cache,    ///< replaced whole, where it is a saved cache
  records,  ///< continued (eval/common/record_file.h), which checks what is there
};

/// Marks an option as the name of a file that its command writes, and returns it.
CLI::Option* mark_output(CLI::Option* option, OutputKind kind);
/// Whether it is marked.
bool is_output(CLI::Option& option);
/// Whether an option names files that its command reads.
bool is_input(CLI::Option& option);

/// Throws Error{kUsage} when an output of the parsed `command` is a file that it reads, under
/// whatever name, the configuration file (empty: none) and the parts of its model included, or
/// another of its outputs; or when it can't be written, as AtomicFile and check_cache_path() do.
void check_output_files(CLI::App& command, const std::string& config_path);

}  // namespace snapkv::cli
