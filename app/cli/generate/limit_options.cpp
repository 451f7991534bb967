// SPDX-License-Identifier: MIT
#include "cli/generate/limit_options.h"

#include "cli/common/number_options.h"

namespace snapkv::cli {

void add_length_option(CLI::App& command, GenerationLimits& limits) {
  command
      .add_option("-n,--n-predict", limits.n_predict,
                  "Most tokens of an answer; -1: until it ends or the context is full")
      ->check(whole_number(-1, kMostTokens))
      ->type_name("N")
      ->capture_default_str();
}

void add_stop_option(CLI::App& command, GenerationLimits& limits) {
  command
      .add_option(
          "--stop", limits.stops,
          "End the answer before this text, which is not printed; can be given several times")
      ->type_name("TEXT")
      ->allow_extra_args(false);
}

void add_ignore_eos_option(CLI::App& command, GenerationLimits& limits) {
  command.add_flag("--ignore-eos", limits.ignore_eos, "Never let the model end its answer");
}

}  // namespace snapkv::cli
