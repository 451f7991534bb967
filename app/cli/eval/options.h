// SPDX-License-Identifier: MIT
// Code that the tasks of `snapkv eval` share: options, configurations to compare, and a run with
// its model, record file and progress. Each task has its own file.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/timer.h"
#include "cli/common/chat_settings.h"
#include "cli/common/cli_types.h"
#include "cli/common/progress.h"
#include "cli/common/settings.h"
#include "eval/common/prompt_format.h"
#include "eval/common/runner.h"
#include "eval/qa/data.h"

namespace snapkv::cli {

/// A policy parameter of which a list may be given, as --budgets 64,128,auto: each value is a
/// configuration.
struct ParamList {
  std::string param;  // as policy.h names it
  std::string flag;   // the list's own option
  std::string help;
  std::vector<PolicyValue> values = {};
  bool typed = false;  // set on the command line
};

struct EvalSettings {
  EvalSettings() { model.check_tensors = true; }  // a broken model gives no results

  ModelSettings model;
  CacheSettings cache;
  std::vector<std::string> policies = {"full", kDefaultPolicy};
  std::vector<ParamList> lists = {
      {.param = "budget", .flag = "--budgets", .help = "Rows kept (instead of --kv-budget)"},
      {.param = "kernel_size",
       .flag = "--kernels",
       .help = "Pooling widths (instead of --kv-kernel)"},
      {.param = "window_size",
       .flag = "--windows",
       .help = "Windows, in tokens (instead of --kv-window)"}};
  std::vector<bool> refresh_modes;  // of SessionOptions::kv_refresh; empty: the cache option's
  /// Rows beyond the budget after which all rows are chosen from again (kv_refresh with a
  /// kv_decode_limit); 0: never. Each is a configuration; empty: the cache options'.
  std::vector<int64_t> refresh_limits;
  std::string out;
  std::string html;
  bool resume = false;
  uint64_t seed = 1;
  int64_t n_predict = 30;
  bool question_agnostic = false;
  bool keeps_full = false;
  bool as_chat = false;
  ChatSettings chat;
};

/// Adds the options that every task has: the record file, the model. `draws`: the prompts depend on
/// --seed.
void add_record_options(CLI::App& app, EvalSettings& settings, bool draws = true);
/// Adds these and the configurations to compare. A task adds its own options first, in a group
/// named after it.
void add_eval_options(CLI::App& app, EvalSettings& settings, bool draws = true);
/// Adds --lengths to a task's group.
void add_lengths_option(CLI::App& app, std::vector<int64_t>& lengths, const std::string& help,
                        const std::string& group);
/// Adds --half, for tasks about texts of which some are to choose settings by.
CLI::Option* add_half_option(CLI::App& app, std::string& half, const std::string& group);
/// Adds --n-predict, for tasks that let the model answer.
void add_answer_option(CLI::App& app, EvalSettings& settings);
/// Adds --question-agnostic, for tasks whose prompts end with a question.
void add_question_option(CLI::App& app, EvalSettings& settings);

/// Adds --keep-full; comes after add_question_option().
void add_stored_option(CLI::App& app, EvalSettings& settings);

/// Adds --chat and its options, for tasks that make prompts with a PromptFormat.
void add_chat_option(CLI::App& app, EvalSettings& settings);
/// Returns the format that --chat gives prompts for this model. Throws kUsage when there is no
/// template.
eval::PromptFormat prompt_format(const EvalSettings& settings, const Model& model);

/// Puts policy full before the others where it is missing, for tasks that measure beside it.
void include_full_cache(EvalSettings& settings);
/// Returns every policy with every value of every list, each configuration once. `model` is as in
/// session_options(). Throws kUsage.
std::vector<SessionOptions> make_configurations(const EvalSettings& settings,
                                                const ModelInfo* model = nullptr);

/// A run of a task: loads the model, opens the record file, shows progress.
class EvalRun {
 public:
  EvalRun(const EvalSettings& settings, const CommonSettings& common);

  eval::RunOptions& options() { return options_; }
  const eval::RunOptions& options() const { return options_; }
  const std::shared_ptr<const Model>& model() const { return options_.model; }
  eval::RecordFile& file() { return *file_; }
  const eval::RecordFile& file() const { return *file_; }
  /// Throws kContextExceeded unless the model can read `n_tokens` and answer with `n_predict`
  /// tokens (0: the answer is part of n_tokens).
  void check_length(int64_t n_tokens, int64_t n_predict) const;
  /// Documents of up to `n_tokens` made of the questions' texts (eval::join_texts), which must fit
  /// into the context with an answer of `n_predict`.
  std::vector<eval::QaQuestion> join(const std::vector<eval::QaQuestion>& questions,
                                     int64_t n_tokens, int64_t n_predict) const;
  /// Runs the prompts that the file lacks (run_items) and finishes with their summary_table.
  void ask(const std::vector<eval::Item>& items);
  /// Shows the fraction of the run that is done, for tasks that measure in smaller steps than
  /// prompts.
  void show_progress(const std::string& title, double fraction);
  /// Ends the progress display, writes the page of the whole record file if asked to, and prints
  /// the table, even if the page fails.
  void finish(const std::string& table);

 private:
  void write_page() const;

  std::string html_;
  eval::RunOptions options_;
  ProgressDisplay display_;
  std::unique_ptr<eval::RecordFile> file_;
  Timer timer_;
};

/// The tasks: each adds its subcommand to `eval`.
Command add_eval_needle(CLI::App& eval, const CommonSettings& common);
Command add_eval_ruler(CLI::App& eval, const CommonSettings& common);
Command add_eval_fidelity(CLI::App& eval, const CommonSettings& common);
Command add_eval_longbench(CLI::App& eval, const CommonSettings& common);
Command add_eval_overlap(CLI::App& eval, const CommonSettings& common);
Command add_eval_qa(CLI::App& eval, const CommonSettings& common);
Command add_eval_quality(CLI::App& eval, const CommonSettings& common);
/// Makes questions for qa by rule, without a model.
Command add_eval_make_qa(CLI::App& eval);
Command add_eval_summary(CLI::App& eval, const CommonSettings& common);
Command add_eval_turns(CLI::App& eval, const CommonSettings& common);
/// Compares the records of other tasks.
Command add_eval_compare(CLI::App& eval);

}  // namespace snapkv::cli
