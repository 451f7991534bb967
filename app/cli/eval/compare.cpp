// SPDX-License-Identifier: MIT
// snapkv eval compare: compares two sets of records, prompt by prompt (eval/compare/compare.h).
#include "eval/compare/compare.h"

#include <CLI/CLI.hpp>

#include "cli/common/terminal.h"
#include "cli/eval/options.h"

namespace snapkv::cli {
namespace {

struct CompareSettings {
  std::vector<std::string> files;
  eval::CompareOptions compare;
};

int run_compare(CompareSettings s) {
  s.compare.file_a = s.files.front();
  s.compare.file_b = s.files.back();
  write_stdout(eval::compare_records(s.compare));
  return 0;
}

void add_compare_options(CLI::App& app, CompareSettings& s) {
  app.add_option("RECORDS", s.files, "Files of records: of side A and B, or one for both")
      ->required()
      ->expected(1, 2)
      ->type_name("FILE");
  const auto add = [&](const char* name, std::string& value, const char* help) {
    return app.add_option(name, value, help)->type_name("FIELD=VALUE,...");
  };
  CLI::Option* a = add("--a", s.compare.a,
                       "Side A: records whose fields have these values, as in "
                       "policy=snapkv,budget=256,question=aware");
  add("--b", s.compare.b, "Side B, in the same way");
  add("--base", s.compare.base, "Side A; every other configuration of side B is compared with it")
      ->excludes(a);
  app.add_flag("--of-full", s.compare.of_full,
               "Only prompts that the full cache answers, by records of policy full in the files");
  app.add_flag("--any-model", s.compare.any_model, "The sides may be of different models");
}

}  // namespace

Command add_eval_compare(CLI::App& eval) {
  auto s = std::make_shared<CompareSettings>();
  CLI::App* app = eval.add_subcommand("compare",
                                      "Records of two configurations, prompt by prompt: which is "
                                      "better, and how sure that is");
  add_compare_options(*app, *s);
  return {app, [s] { return run_compare(*s); }};
}

}  // namespace snapkv::cli
