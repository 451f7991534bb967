// SPDX-License-Identifier: MIT
// snapkv eval TASK: quality of many cache configurations on prompts that are each read once; a
// JSONL file of records and a Markdown table (docs/evaluation.md). The tasks are in eval/.
#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/timer.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "eval/needle.h"

namespace snapkv::cli {
namespace {

struct EvalSettings {
  std::string task;
  ModelSettings model;
  CacheSettings cache;
  std::vector<std::string> policies = {"full", "snapkv"};
  std::vector<int64_t> budgets;
  std::vector<int> kernels;
  std::string out;
  bool resume = false;
  int64_t n_predict = 30;
  std::string kind = "single";
  std::string haystack;
  eval::NeedleOptions needle;
};

// Every policy with every budget and kernel; `full` once.
std::vector<SessionOptions> make_configurations(const EvalSettings& s) {
  const SessionOptions base = session_options(s.cache, 0);
  std::vector<int64_t> budgets = s.budgets;
  std::vector<int> kernels = s.kernels;
  if (budgets.empty()) budgets = {base.kv.budget};
  if (kernels.empty()) kernels = {base.kv.kernel_size};
  if (!s.budgets.empty() && base.kv.ratio > 0) {
    fail(ErrorCode::kUsage, "--budgets and --kv-ratio exclude each other");
  }
  std::vector<SessionOptions> all;
  const auto add = [&](const SessionOptions& options) {
    validate(options.kv);
    const auto same = [&](const SessionOptions& other) {
      return eval::configuration_json(other) == eval::configuration_json(options);
    };
    if (std::none_of(all.begin(), all.end(), same)) all.push_back(options);
  };
  for (const std::string& policy : s.policies) {
    for (const int64_t budget : budgets) {
      for (const int kernel : kernels) {
        SessionOptions options = base;
        options.kv.name = policy;
        options.kv.budget = budget;
        options.kv.kernel_size = kernel;
        add(options);
      }
    }
  }
  return all;
}

void check_lengths(const Model& model, const EvalSettings& s) {
  for (const int64_t length : s.needle.lengths) {
    if (length + s.n_predict <= model.info().n_ctx_train) continue;
    fail(ErrorCode::kContextExceeded,
         "a length of {} and an answer of {} tokens exceed the model's context of {}", length,
         s.n_predict, model.info().n_ctx_train);
  }
}

int run_eval(EvalSettings s, const CommonSettings& common) {
  eval::RunOptions run;
  run.configurations = make_configurations(s);
  run.n_predict = s.n_predict;
  run.seed = s.needle.seed;
  s.needle.kind = eval::needle_kind(s.kind);
  if (!s.haystack.empty()) s.needle.haystack = eval::read_haystack(s.haystack);
  ProgressDisplay display(!common.no_progress, common.verbose);
  run.model = load_model(s.model, display.callback());
  check_lengths(*run.model, s);
  eval::RecordFile file(s.out, s.resume);
  if (file.repaired()) {
    write_stderr(fmt::format("snapkv: {}: its last line was torn and is cut off\n", s.out));
  }
  const Timer timer;
  run.prefill_progress = display.callback();
  run.cancelled = interrupted;
  run.progress = [&](int64_t done, int64_t total) {
    display.set_title(fmt::format("prompt {} of {}", done + 1, total));
    display.show_fraction(static_cast<double>(done) / static_cast<double>(total), timer.seconds());
  };
  const std::vector<eval::Item> items = eval::needle_items(run.model, s.needle);
  eval::run_items(run, items, file);
  display.clear();
  write_stdout(eval::summary_table(run, items, file));
  return 0;
}

void add_needle_options(CLI::App& app, EvalSettings& s) {
  constexpr const char* kGroup = "Needle";
  app.add_option("--kind", s.kind, "single, multi-key, multi-value, multi-query or text")
      ->check(CLI::IsMember({"single", "multi-key", "multi-value", "multi-query", "text"}))
      ->type_name("NAME")
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--lengths", s.needle.lengths, "Tokens of the prompts")
      ->check(whole_number(1))
      ->delimiter(',')
      ->type_name("N,N,...")
      ->default_str("1000,2000,4000")
      ->group(kGroup);
  const auto add = [&](const char* name, auto& value, const char* help, int64_t high) {
    app.add_option(name, value, help)
        ->check(whole_number(1, high))
        ->type_name("N")
        ->capture_default_str()
        ->group(kGroup);
  };
  add("--depths", s.needle.n_depths, "Depths of the fact, from the beginning to the end", 1000);
  add("--samples", s.needle.n_samples, "Prompts of each length and depth", 100'000);
  add("--facts", s.needle.n_facts, "Facts of the multi kinds", 40);
  add("--n-predict", s.n_predict, "Tokens of an answer, at most; it ends with its first line",
      1 << 20);
  app.add_option("--haystack", s.haystack, "Folder of .txt files [default: generated sentences]")
      ->type_name("DIR")
      ->group(kGroup);
}

}  // namespace

Command add_eval_command(CLI::App& root, const CommonSettings& common) {
  auto s = std::make_shared<EvalSettings>();
  CLI::App* app = root.add_subcommand(
      "eval", "Quality of many cache configurations: a file of records and a table");
  app->add_option("task", s->task, "needle: facts hidden in long texts")
      ->required()
      ->check(CLI::IsMember({"needle"}))
      ->type_name("TASK");
  app->add_option("-o,--out", s->out, "File of records, one JSON object a line")
      ->required()
      ->type_name("FILE");
  app->add_flag("--resume", s->resume, "Continue the file: skip what it has");
  app->add_option("--policies", s->policies, "Policies to compare")
      ->check(CLI::IsMember(policy_names()))
      ->delimiter(',')
      ->type_name("NAME,...")
      ->default_str("full,snapkv");
  app->add_option("--budgets", s->budgets, "Rows kept (instead of --kv-budget)")
      ->delimiter(',')
      ->type_name("N,N,...");
  app->add_option("--kernels", s->kernels, "Pooling widths (instead of --kv-kernel)")
      ->delimiter(',')
      ->type_name("N,N,...");
  app->add_option("--seed", s->needle.seed, "Another seed, other prompts")
      ->type_name("N")
      ->capture_default_str();
  add_needle_options(*app, *s);
  add_model_options(*app, s->model);
  add_thread_option(*app, s->model);
  add_cache_options(*app, s->cache);
  return {app, [s, &common] { return run_eval(*s, common); }};
}

}  // namespace snapkv::cli
