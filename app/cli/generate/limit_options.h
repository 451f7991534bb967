// SPDX-License-Identifier: MIT
// Options that limit the length of an answer.
#pragma once

#include "cli/common/cli_types.h"
#include "cli/generate/generation.h"

namespace snapkv::cli {

/// -n
void add_length_option(CLI::App& command, GeneratorOptions& limits);
void add_stop_option(CLI::App& command, GeneratorOptions& limits);
void add_ignore_eos_option(CLI::App& command, GeneratorOptions& limits);

}  // namespace snapkv::cli
