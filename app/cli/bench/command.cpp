// SPDX-License-Identifier: MIT
// snapkv bench: measures tokens per second of prompts and of decoding, with llama-bench's options
// and field names, and shows where time and memory went.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "cli/bench/check.h"
#include "cli/bench/plan.h"
#include "cli/bench/report.h"
#include "cli/bench/run.h"
#include "cli/commands.h"
#include "cli/common/output_files.h"
#include "cli/common/progress.h"
#include "cli/common/terminal.h"
#include "eval/common/page.h"
#include "snapkv/options.h"

namespace snapkv::cli {
namespace {

constexpr const char* kBenchFooter =
    "Lists: values separated by commas, an option given several times, and ranges (first-last,\n"
    "first-last+step, first-last*factor), each value once. Every combination is one test.\n"
    "GFLOP/s counts 2 operations per weight and token and 4 * head_dim per head and visible row;\n"
    "GB/s counts weights once per step and the rows of the cache; % limit is of what this machine\n"
    "multiplies (ops) or reads (mem) at most, measured for half a second before each test.\n"
    "docs/bench.md has the formulas and all fields. Decode tests after a depth continue\n"
    "where the last repetition stopped; all other repetitions begin with a new cache.";

// Checks the kernel and cache types of a plan before any time is spent on it.
void check_options(const std::shared_ptr<const Model>& model, const std::vector<BenchTest>& plan) {
  for (const BenchTest& test : plan) Session(model, test.session);
}

// Checks every cache type in the tests with this many threads, at their largest batch.
BenchCheck check_before_timing(const std::shared_ptr<const Model>& model, int n_threads,
                               const std::vector<BenchTest>& plan, const BenchSettings& s,
                               ProgressDisplay& progress) {
  std::vector<DType> kv_types;
  int64_t n_seq = 1;
  for (const BenchTest& test : plan) {
    if (test.n_threads != n_threads) continue;
    n_seq = std::max(n_seq, test.n_seq);
    const DType type = test.session.kv_type;
    if (std::find(kv_types.begin(), kv_types.end(), type) == kv_types.end()) {
      kv_types.push_back(type);
    }
  }
  BenchCheck worst;
  for (const DType type : kv_types) {
    const BenchCheck check = check_model(model, type, n_seq, s.seed, progress.callback());
    if (worst.tolerance == 0 || check.max_difference > worst.max_difference) worst = check;
  }
  progress.clear();
  write_stderr(fmt::format("snapkv: checked on {}: {}: log-probabilities differ by {:.2g}\n",
                           model->backend_description(), worst.what, worst.max_difference));
  return worst;
}

int run_bench(const BenchSettings& s, const CommonSettings& common) {
  if (!s.html.empty()) eval::check_page(s.html);
  require_model(s.model);
  make_bench_plan(s);  // refuses invalid options before the file is read
  const ModelDescription description = describe_model(s.model);
  if (!description.problems.empty()) fail(ErrorCode::kBadModel, "{}", description.problems[0]);
  std::vector<BenchTest> plan = make_bench_plan(s, &description.info);
  for (BenchTest& test : plan) test.session = resolve_options(test.session, description.info);
  const ModelCost cost(description);
  const std::unique_ptr<BenchPrinter> printer = BenchPrinter::make(s.output);
  ProgressDisplay progress(!common.no_progress, common.verbose);

  eval::Json records = eval::Json::array();
  BenchContext context;
  std::unique_ptr<BenchRunner> runner;
  int n_threads = 0;
  for (const BenchTest& test : plan) {
    if (test.n_threads != n_threads) {
      runner.reset();  // frees its model too: only one is in memory at a time
      n_threads = test.n_threads;
      ModelSettings model_settings = s.model;
      model_settings.n_threads = n_threads;
      const auto model = load_model(model_settings, progress.callback());
      check_options(model, plan);
      context = {.model = model->info(),
                 .backend = model->backend_description(),
                 .weights = value_text(model_option_table().get(s.model, "weights")),
                 .check = {}};
      if (!s.no_check) context.check = check_before_timing(model, n_threads, plan, s, progress);
      runner = std::make_unique<BenchRunner>(model, cost, s, progress);
    }
    const BenchResult result = runner->run(test);
    progress.clear();
    printer->add(context, result);
    records.push_back(to_json(context, result));
  }
  printer->finish();
  if (!s.html.empty()) {
    eval::write_page(s.html, eval::records_page("bench", std::move(records)));
    write_stderr(fmt::format("snapkv: wrote {}\n", s.html));
  }
  return 0;
}

// Adds the cache options of all commands, except that policies, budgets and types are lists.
void add_cache_lists(CLI::App& app, BenchSettings& s) {
  add_cache_options(app, s.cache);
  for (const char* name : {"--kv-policy", "--kv-budget", "--kv-ratio", "--kv-type"}) {
    app.remove_option(app.get_option(name));
  }
  const auto add = [&](const char* name, auto& value, const char* help, const char* initial) {
    return app.add_option(name, value, help)
        ->delimiter(',')
        ->type_name("LIST")
        ->default_str(initial)
        ->group("KV cache");
  };
  add("--kv-policy", s.policies, "What is kept of a prompt: full, snapkv, ...", "snapkv");
  add("--kv-budget", s.budgets, "Rows kept per layer and KV head, the window included", "1024")
      ->check(count_list(kBudgetRange))
      ->excludes(app.get_option("--kv-memory"));
  add("--kv-type", s.kv_types, "Type of the cache: f16, bf16, f32, q8_0", "f16");
}

void add_options(CLI::App& app, BenchSettings& s) {
  const auto add_list = [&](const char* name, auto& value, const char* help, const char* initial,
                            ListRange range) {
    app.add_option(name, value, help)
        ->check(count_list(range))
        ->delimiter(',')
        ->type_name("LIST")
        ->default_str(initial);
  };
  add_list("-p,--n-prompt", s.n_prompt, "Tokens of a prompt; 0: none", "512", kPromptRange);
  add_list("-n,--n-gen", s.n_gen, "Tokens to generate; 0: none", "128", kPromptRange);
  add_list("-d,--n-depth", s.n_depth, "Tokens in the context before the timed ones", "0",
           kPromptRange);
  add_list("-b,--batch", s.n_seq, "Sequences decoded together (llama-bench's -b is --chunk here)",
           "1", kBatchRange);
  add_list("--step", s.n_step,
           "Tokens of a sequence decoded in one step, as guesses are checked (generate --draft)", "1",
           kStepRange);
  add_list("-t,--threads", s.threads, "Threads; 0: one for each processor that the process may use",
           "0", kThreadsRange);
  app.add_option("-r,--repetitions", s.repetitions, "Timed repetitions of each test")
      ->check(whole_number(1, kMostSamples))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("-o,--output", s.output, "Format of the results")
      ->check(CLI::IsMember({"md", "csv", "json", "jsonl"}))
      ->type_name("FORMAT")
      ->capture_default_str();
  mark_output(app.add_option("--html", s.html, "Also draw the results as an HTML page"),
              OutputKind::file)
      ->type_name("FILE");
  app.add_option("--seed", s.seed, "Another seed, other tokens")
      ->check(seed_number())
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--no-warmup", s.no_warmup, "Time the first run too");
  app.add_flag("--no-check", s.no_check, "Time without checking results first");
  app.add_flag("--no-limits", s.no_limits,
               "Time without measuring what this machine multiplies and reads at most");
  add_model_argument(app, s.model);
  add_device_options(app, s.model);
  add_cache_lists(app, s);
  app.footer(kBenchFooter);
}

}  // namespace

Command add_bench_command(CLI::App& root, const CommonSettings& common) {
  auto settings = std::make_shared<BenchSettings>();
  CLI::App* app = root.add_subcommand(
      "bench", "Measure tokens per second and memory; options and fields of llama-bench");
  add_options(*app, *settings);
  return {app, [settings, &common] { return run_bench(*settings, common); }};
}

}  // namespace snapkv::cli
