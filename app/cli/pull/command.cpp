// SPDX-License-Identifier: MIT
// snapkv pull NAME: fetches a model from Hugging Face, or from a URL, and prints its path.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/common/number_options.h"
#include "cli/common/terminal.h"
#include "cli/pull/pull.h"

namespace snapkv::cli {
namespace {

/// Says what keeps the model from running, which is known once it is there.
void warn_of_problems(const std::string& path) {
  try {
    for (const std::string& problem : describe_model(path).problems) {
      write_stderr(fmt::format("snapkv: warning: it can't run: {}\n", problem));
      return;  // one is enough; snapkv info lists them
    }
  } catch (const Error& e) {
    write_stderr(fmt::format("snapkv: warning: it can't run: {}\n", e.what()));
  }
}

int run_pull(const PullSettings& settings, const CommonSettings& common) {
  const std::string path = pull_model(settings, common);
  warn_of_problems(path);
  write_stdout(path + "\n");
  return 0;
}

}  // namespace

Command add_pull_command(CLI::App& root, const CommonSettings& common) {
  auto s = std::make_shared<PullSettings>();
  CLI::App* app =
      root.add_subcommand("pull", "Fetch a model from Hugging Face, or from a URL, by its name");
  app->add_option("MODEL", s->source,
                  "org/repo[:QUANT] or org/repo/FILE.gguf of Hugging Face, or the https URL of a "
                  ".gguf file; without QUANT Q4_K_M, else the next of Q4_K_S, Q4_0, Q5_K_M, "
                  "Q5_K_S, Q6_K, Q8_0, F16 and BF16 that is there")
      ->type_name("MODEL")
      ->required();
  app->add_option("--retries", s->n_retries,
                  "How often a broken connection is tried again without progress")
      ->check(whole_number(0, 1000))
      ->type_name("N")
      ->capture_default_str();
  app->footer(
      "Prints the model's path. Goes on where an earlier run has stopped, and checks the SHA-256.\n"
      "Models of Hugging Face go into the cache that its programs and llama.cpp use, others into\n"
      "$XDG_CACHE_HOME/snapkv/models; snapkv models lists both. HF_TOKEN is for models that need\n"
      "an account, HF_ENDPOINT for a mirror.");
  return {app, [s, &common] { return run_pull(*s, common); }};
}

}  // namespace snapkv::cli
