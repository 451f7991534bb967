// SPDX-License-Identifier: MIT
// snapkv eval fidelity: measures how far compressed caches move a model's predictions on the user's
// own texts (eval/fidelity/fidelity.h).
#include "eval/fidelity/fidelity.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/common/terminal.h"
#include "cli/eval/options.h"

namespace snapkv::cli {
namespace {

struct FidelitySettings {
  EvalSettings eval;
  std::vector<std::string> texts;
  eval::FidelityOptions fidelity;
};

int run_fidelity(const FidelitySettings& s, const CommonSettings& common) {
  const std::vector<eval::TextFile> texts = eval::read_texts(s.texts, std::cin);
  EvalRun run(s.eval, common);
  const eval::FidelityPlan plan = eval::plan_fidelity(*run.model(), texts, s.fidelity);
  for (const std::string& remark : plan.remarks) write_stderr("snapkv: " + remark + "\n");
  eval::run_fidelity(
      run.options(), plan, run.file(),
      [&](const std::string& title, double fraction) { run.show_progress(title, fraction); });
  run.finish(eval::fidelity_table(run.options(), plan, run.file()));
  return 0;
}

void add_fidelity_options(CLI::App& app, FidelitySettings& s) {
  constexpr const char* kGroup = "Fidelity";
  app.add_option("--text", s.texts, "Text files, folders of .txt files, or - for stdin")
      ->required()
      ->type_name("FILE")
      ->group(kGroup);
  add_lengths_option(app, s.fidelity.lengths, "Tokens of the prompts", kGroup);
  const auto add = [&](const char* name, auto& value, const char* help, int64_t high) {
    app.add_option(name, value, help)
        ->check(whole_number(1, high))
        ->type_name("N")
        ->capture_default_str()
        ->group(kGroup);
  };
  add("--n-continue", s.fidelity.n_continue, "Positions compared after each prompt", 1 << 20);
  add("--samples", s.fidelity.n_samples, "Prompts of each text and length, spread evenly", 100'000);
}

}  // namespace

Command add_eval_fidelity(CLI::App& eval, const CommonSettings& common) {
  auto s = std::make_shared<FidelitySettings>();
  CLI::App* app = eval.add_subcommand(
      "fidelity", "Predictions on your own texts: perplexity, divergence from the full cache");
  add_fidelity_options(*app, *s);
  add_eval_options(*app, s->eval, false);
  return {app, [s, &common] { return run_fidelity(*s, common); }};
}

}  // namespace snapkv::cli
