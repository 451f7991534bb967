// SPDX-License-Identifier: MIT
#include "cli/generate/limit_options.h"

#include <CLI/CLI.hpp>

#include "cli/common/table_options.h"
#include "snapkv/options.h"

namespace snapkv::cli {

void add_length_option(CLI::App& command, GeneratorOptions& limits) {
  add_table_option(command, generator_option_table(), "max_tokens", limits);
}

void add_stop_option(CLI::App& command, GeneratorOptions& limits) {
  command
      .add_option(
          "--stop", limits.stops,
          "End the answer before this text, which is not printed; can be given several times")
      ->type_name("TEXT")
      ->allow_extra_args(false);
}

void add_ignore_eos_option(CLI::App& command, GeneratorOptions& limits) {
  add_table_option(command, generator_option_table(), "ignore_eos", limits);
}

}  // namespace snapkv::cli
