// SPDX-License-Identifier: MIT
// snapkv eval longbench: runs LongBench's tasks on the user's copy of its files
// (eval/longbench/longbench.h).
#include "eval/longbench/longbench.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "cli/common/terminal.h"
#include "cli/eval/options.h"

namespace snapkv::cli {
namespace {

struct LongbenchSettings {
  EvalSettings eval;
  std::string data, prompts;
  std::vector<std::string> tasks;
  int64_t samples = 0;
  eval::LongbenchOptions longbench;
};

int run_longbench(LongbenchSettings s, const CommonSettings& common) {
  s.longbench.question_agnostic = s.eval.question_agnostic;
  std::vector<std::string> left_out;
  const std::vector<eval::LongbenchSet> sets =
      eval::open_longbench(s.data, s.prompts, s.tasks, s.samples, left_out);
  std::string remark;
  if (!left_out.empty()) {
    remark = fmt::format("Left out: {} (not supported: word segmentation of Chinese).\n",
                         fmt::join(left_out, ", "));
  }
  EvalRun run(s.eval, common);
  s.longbench.format = prompt_format(s.eval, *run.model());
  const std::vector<eval::Item> items = eval::longbench_items(run.model(), sets, s.longbench);
  if (!remark.empty()) write_stderr("snapkv: " + remark);
  eval::run_items(run.options(), items, run.file());
  run.finish(eval::longbench_table(run.options(), sets, items, run.file(), s.longbench.format) +
             remark);
  return 0;
}

void add_longbench_options(CLI::App& app, LongbenchSettings& s) {
  constexpr const char* kGroup = "LongBench";
  app.add_option("--data", s.data, "Folder of LongBench's files: hotpotqa.jsonl ...")
      ->required()
      ->type_name("DIR")
      ->group(kGroup);
  app.add_option("--prompts", s.prompts,
                 "Folder of its dataset2prompt.json and dataset2maxlen.json [default: that of "
                 "--data, or config in it]")
      ->type_name("DIR")
      ->group(kGroup);
  app.add_option("--tasks", s.tasks, "hotpotqa, trec ... [default: those in the folder]")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->group(kGroup);
  const auto add = [&](const char* name, int64_t& value, int64_t low, const char* help) {
    app.add_option(name, value, help)
        ->check(whole_number(low, kMostTokens))
        ->type_name("N")
        ->group(kGroup);
  };
  add("--samples", s.samples, 1, "The first N prompts of each task [default: all]");
  add("--max-length", s.longbench.max_length, 2,
      "Longer prompts lose their middle [default: the model's context less the answer]");
}

}  // namespace

Command add_eval_longbench(CLI::App& eval, const CommonSettings& common) {
  auto s = std::make_shared<LongbenchSettings>();
  CLI::App* app = eval.add_subcommand("longbench", "LongBench, on your copy of its files");
  add_longbench_options(*app, *s);
  add_chat_option(*app, s->eval);
  add_question_option(*app, s->eval);
  add_eval_options(*app, s->eval, false);
  return {app, [s, &common] { return run_longbench(*s, common); }};
}

}  // namespace snapkv::cli
