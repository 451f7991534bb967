// SPDX-License-Identifier: MIT
// snapkv eval TASK: measures the quality of many cache configurations on prompts that are each read
// once, as a JSONL file of records and a Markdown table (docs/evaluation.md).
#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/eval/options.h"

namespace snapkv::cli {

Command add_eval_command(CLI::App& root, const CommonSettings& common) {
  CLI::App* app = root.add_subcommand(
      "eval", "Quality of many cache configurations: a file of records and a table");
  app->require_subcommand(1);
  Command command;
  command.app = app;
  command.tasks = {add_eval_quality(*app, common),
                   add_eval_needle(*app, common),
                   add_eval_ruler(*app, common),
                   add_eval_fidelity(*app, common),
                   add_eval_longbench(*app, common),
                   add_eval_overlap(*app, common),
                   add_eval_turns(*app, common),
                   add_eval_qa(*app, common),
                   add_eval_summary(*app, common),
                   add_eval_make_qa(*app),
                   add_eval_compare(*app)};
  return command;
}

}  // namespace snapkv::cli
