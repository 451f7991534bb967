// SPDX-License-Identifier: MIT
// snapkv needle: asks many generated prompts for their fact, with the full cache and with every
// budget and kernel asked for, and prints the accuracies as a Markdown table.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/timer.h"
#include "cli/commands.h"
#include "cli/common/progress.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"
#include "cli/demo/needle_task.h"
#include "eval/common/runner.h"

namespace snapkv::cli {
namespace {

constexpr int64_t kAnswerTokens = 7;  // a space, five digits, the full stop

struct NeedleSettings {
  NeedleTaskSettings task;
  int64_t trials = 100;
  std::vector<int64_t> lengths = {1000, 2000, 4000};
  std::vector<int64_t> budgets = {64, 128, 256};
  std::vector<int> kernels = {1, 7, 15};
  bool json = false;
};

// One cache to compare; the first of a list is the full one.
struct Variant {
  SessionOptions options;
  std::map<int64_t, std::pair<int64_t, int64_t>> right_of;  // by length: right answers, trials
};

std::vector<Variant> make_variants(const NeedleSettings& s) {
  const CacheSettings& given = s.task.cache;
  std::vector<Variant> variants;
  variants.push_back({session_options(given, 0, {"full"}).front(), {}});
  const PolicyInfo& info = policy_info(given.policy);
  if (!info.has_budget) return variants;
  // with --kv-memory the model decides what the budget is; a policy may have no kernel
  const bool by_memory = given.memory > 0;
  const bool has_kernel = info.find("kernel_size") != nullptr;
  for (const int64_t budget : by_memory ? std::vector<int64_t>{0} : s.budgets) {
    for (const int kernel : has_kernel ? s.kernels : std::vector<int>{0}) {
      CacheSettings cache = given;
      if (!by_memory) cache.params["budget"] = budget;
      if (has_kernel) cache.params["kernel_size"] = kernel;
      cache.params["ratio"] = 0.0;
      variants.push_back({session_options(cache, 0), {}});
    }
  }
  return variants;
}

// Trial i of `trials`: lengths take turns; the depths of one length are spread evenly.
NeedleSpec trial_spec(const NeedleSettings& s, int64_t i) {
  const auto n_lengths = std::ssize(s.lengths);
  const int64_t turn = i % n_lengths, n_turns = (s.trials - turn + n_lengths - 1) / n_lengths;
  const double depth = (static_cast<double>(i / n_lengths) + 0.5) / static_cast<double>(n_turns);
  return {.length = s.lengths[static_cast<size_t>(turn)],
          .depth = depth,
          .name = "",
          .seed = s.task.seed * 1'000'003 + static_cast<uint64_t>(i)};
}

std::string json_line(const NeedleSpec& spec, const NeedlePrompt& prompt, const Variant& variant,
                      const NeedleRun& run) {
  const PolicyConfig& kv = variant.options.kv;
  nlohmann::ordered_json json = {{"length", spec.length}, {"tokens", prompt.tokens.size()},
                                 {"depth", spec.depth},   {"seed", spec.seed},
                                 {"name", prompt.name},   {"digits", prompt.digits},
                                 {"policy", kv.name}};
  if (kv.name != "full") {
    json["budget"] = kv.budget;
    if (variant.options.kv_memory > 0) json["kv_memory"] = variant.options.kv_memory;
    if (variant.options.kv_decode_limit > 0) {
      json["kv_decode_limit"] = variant.options.kv_decode_limit;
    }
    eval::Json params = eval::policy_json(kv);
    params.erase("ratio");
    json.update(params);
  }
  json["answer"] = run.answer;
  json["right"] = run.right;
  json["kv_bytes"] = run.after_prefill.kv_bytes_used;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string score_cell(int64_t right, int64_t n) {
  if (n == 0) return "-";
  return fmt::format("{}/{} ({:.0f}%)", right, n,
                     100.0 * static_cast<double>(right) / static_cast<double>(n));
}

std::string markdown_table(const NeedleSettings& s, const std::vector<Variant>& variants) {
  std::vector<std::vector<std::string>> rows = {{"cache", "rows kept", "kernel"}};
  const std::set<int64_t> lengths(s.lengths.begin(), s.lengths.end());
  for (const int64_t length : lengths) rows[0].push_back(plural(length, "token"));
  rows[0].push_back("all");
  for (const Variant& v : variants) {
    const PolicyConfig& kv = v.options.kv;
    const PolicyInfo& info = policy_info(kv.name);
    const bool has_kernel = info.find("kernel_size") != nullptr;
    rows.push_back({kv.name, info.has_budget ? fmt::format("{}", kv.budget) : "all",
                    has_kernel ? value_text(policy_value(kv, "kernel_size")) : "-"});
    int64_t right = 0, n = 0;
    for (const int64_t length : lengths) {
      const auto found = v.right_of.find(length);
      const auto score = found == v.right_of.end() ? std::pair<int64_t, int64_t>{} : found->second;
      rows.back().push_back(score_cell(score.first, score.second));
      right += score.first;
      n += score.second;
    }
    rows.back().push_back(score_cell(right, n));
  }
  std::vector<size_t> widths(rows[0].size(), 3);
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (size_t r = 0; r < rows.size(); ++r) {
    text += "|";
    for (size_t i = 0; i < widths.size(); ++i) {
      text += fmt::format(" {:<{}} |", rows[r][i], widths[i]);
    }
    text += "\n";
    if (r > 0) continue;
    text += "|";
    for (const size_t width : widths) text += std::string(width + 2, '-') + "|";
    text += "\n";
  }
  return text;
}

void run_trials(const std::shared_ptr<const Model>& model, const NeedleSettings& s,
                std::vector<Variant>& variants, ProgressDisplay& progress) {
  const eval::Haystack haystack;
  const Timer timer;
  const auto n_variants = std::ssize(variants);
  for (int64_t i = 0; i < s.trials; ++i) {
    const NeedleSpec spec = trial_spec(s, i);
    const NeedlePrompt prompt = make_needle_prompt(*model, haystack, spec);
    progress.set_title(fmt::format("trial {} of {}", i + 1, s.trials));
    for (int64_t v = 0; v < n_variants; ++v) {
      progress.show_fraction(
          static_cast<double>(i * n_variants + v) / static_cast<double>(s.trials * n_variants),
          timer.seconds());
      Variant& variant = variants[static_cast<size_t>(v)];
      const NeedleRun run =
          run_needle(model, variant.options, prompt, kAnswerTokens, progress.callback());
      auto& [right, n] = variant.right_of[spec.length];
      right += run.right ? 1 : 0;
      ++n;
      if (s.json) write_stdout(json_line(spec, prompt, variant, run));
    }
  }
  progress.clear();
}

int run_needle_command(const NeedleSettings& s, const CommonSettings& common) {
  std::vector<Variant> variants = make_variants(s);
  ProgressDisplay progress(!common.no_progress, common.verbose);
  const std::shared_ptr<const Model> model = load_needle_model(s.task.model, progress.callback());
  for (Variant& v : variants) v.options = resolve_options(v.options, model->info());
  const int64_t n_ctx = model->info().n_ctx_train;
  for (const int64_t length : s.lengths) {
    if (length + kAnswerTokens <= n_ctx) continue;
    fail(ErrorCode::kContextExceeded,
         "a length of {} and an answer of {} tokens exceed the "
         "model's context of {}",
         length, kAnswerTokens, n_ctx);
  }
  run_trials(model, s, variants, progress);
  if (!s.json) write_stdout(markdown_table(s, variants));
  return 0;
}

}  // namespace

Command add_needle_command(CLI::App& root, const CommonSettings& common) {
  auto s = std::make_shared<NeedleSettings>();
  CLI::App* app = root.add_subcommand(
      "needle", "Ask many texts for a hidden fact: a table of right answers by cache");
  const CLI::Validator counts = whole_number(1);
  app->add_option("--trials", s->trials, "Texts; lengths take turns, depths are spread evenly")
      ->check(counts)
      ->type_name("N")
      ->capture_default_str();
  app->add_option("--lengths", s->lengths, "Tokens of the texts")
      ->check(counts)
      ->delimiter(',')
      ->type_name("N,N,...")
      ->default_str("1000,2000,4000");
  CLI::Option* budgets =
      app->add_option("--budgets", s->budgets, "Rows kept (instead of --kv-budget)");
  budgets->delimiter(',')->type_name("N,N,...")->default_str("64,128,256");
  app->add_option("--kernels", s->kernels, "Pooling widths (instead of --kv-kernel)")
      ->delimiter(',')
      ->type_name("N,N,...")
      ->default_str("1,7,15");
  app->add_flag("--json", s->json, "Print one JSON object per text and cache instead of the table");
  add_needle_task_options(*app, s->task, "Another seed, other texts");
  budgets->excludes(app->get_option("--kv-memory"));
  return {app, [s, &common] { return run_needle_command(*s, common); }};
}

}  // namespace snapkv::cli
