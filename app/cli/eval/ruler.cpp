// SPDX-License-Identifier: MIT
// snapkv eval ruler: runs RULER's synthetic tasks (eval/ruler/ruler.h).
#include "eval/ruler/ruler.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "cli/common/without_repeats.h"
#include "cli/eval/options.h"
#include "eval/common/haystack.h"

namespace snapkv::cli {
namespace {

struct RulerSettings {
  EvalSettings eval;
  std::string haystack;
  eval::RulerOptions ruler;
};

// Returns a table of tasks for each length and, with several lengths, one of their means.
std::string tables(const EvalRun& run, std::vector<eval::Item> items,
                   const std::vector<int64_t>& lengths) {
  std::string text;
  const size_t n = items.size() / lengths.size();  // of each length, one length after the other
  for (size_t i = 0; i < lengths.size(); ++i) {
    const auto begin = items.begin() + static_cast<std::ptrdiff_t>(i * n);
    const auto end = begin + static_cast<std::ptrdiff_t>(n);
    text += fmt::format("{}{} tokens:\n\n{}", i > 0 ? "\n" : "", lengths[i],
                        eval::summary_table(run.options(), {begin, end}, run.file()));
    for (auto item = begin; item != end; ++item) item->column = fmt::format("{}", lengths[i]);
  }
  if (lengths.size() == 1) return text;
  return text + "\nAll tasks, by length:\n\n" +
         eval::summary_table(run.options(), items, run.file());
}

int run_ruler(RulerSettings s, const CommonSettings& common) {
  s.ruler.seed = s.eval.seed;
  s.ruler.lengths = without_repeats(s.ruler.lengths);  // each has its own table
  if (!s.haystack.empty()) s.ruler.haystack = eval::read_haystack(s.haystack);
  EvalRun run(s.eval, common);
  for (const int64_t length : s.ruler.lengths) run.check_length(length, 0);
  s.ruler.format = prompt_format(s.eval, *run.model());
  const std::vector<eval::Item> items = eval::ruler_items(run.model(), s.ruler);
  eval::run_items(run.options(), items, run.file());
  run.finish(tables(run, items, s.ruler.lengths));
  return 0;
}

void add_ruler_options(CLI::App& app, RulerSettings& s) {
  constexpr const char* kGroup = "RULER";
  app.add_option("--tasks", s.ruler.tasks, "Tasks to run")
      ->check(CLI::IsMember(eval::ruler_task_names()))
      ->delimiter(',')
      ->type_name("NAME,...")
      ->default_str("all")
      ->group(kGroup);
  add_lengths_option(app, s.ruler.lengths, "Tokens of prompt and answer together", kGroup);
  app.add_option("--samples", s.ruler.n_samples, "Prompts of each task and length")
      ->check(whole_number(1, 100'000))
      ->type_name("N")
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--haystack", s.haystack,
                 "Folder of .txt files, the essays [default: generated sentences]")
      ->type_name("DIR")
      ->group(kGroup);
}

}  // namespace

Command add_eval_ruler(CLI::App& eval, const CommonSettings& common) {
  auto s = std::make_shared<RulerSettings>();
  CLI::App* app = eval.add_subcommand("ruler", "RULER: needles, variables and words to count");
  add_ruler_options(*app, *s);
  add_chat_option(*app, s->eval);
  add_question_option(*app, s->eval);
  add_eval_options(*app, s->eval);
  return {app, [s, &common] { return run_ruler(*s, common); }};
}

}  // namespace snapkv::cli
