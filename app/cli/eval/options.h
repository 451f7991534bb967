// SPDX-License-Identifier: MIT
// What the tasks of `snapkv eval` share: options, configurations to compare, and a run with its
// model, record file and progress. One file per task, eval_<task>.cpp, builds on it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/timer.h"
#include "cli/common/chat_settings.h"
#include "cli/common/progress.h"
#include "cli/common/settings.h"
#include "eval/common/prompt_format.h"
#include "eval/common/runner.h"

namespace snapkv::cli {

struct EvalSettings {
  EvalSettings() { model.check_tensors = true; }  // what a broken model answers is no result

  ModelSettings model;
  CacheSettings cache;
  std::vector<std::string> policies = {"full", "snapkv"};
  std::vector<int64_t> budgets;
  std::vector<int> kernels;
  bool typed_budgets = false, typed_kernels = false;  // on the command line
  std::vector<bool> refresh_modes;  // of SessionOptions::kv_refresh; empty: the cache option's
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

/// Of every task: the record file, the model. `draws`: the task's prompts depend on --seed.
void add_record_options(CLI::App& app, EvalSettings& settings, bool draws = true);
/// Those and the configurations to compare. A task adds its own first, in a group of its name.
void add_eval_options(CLI::App& app, EvalSettings& settings, bool draws = true);
/// --lengths, in a task's group.
void add_lengths_option(CLI::App& app, std::vector<int64_t>& lengths, const std::string& help,
                        const std::string& group);
/// --n-predict, for tasks that let the model answer.
void add_answer_option(CLI::App& app, EvalSettings& settings);
/// --question-agnostic, for tasks whose prompts end with a question.
void add_question_option(CLI::App& app, EvalSettings& settings);

/// --keep-full, after add_question_option().
void add_stored_option(CLI::App& app, EvalSettings& settings);

/// --chat and its options, for tasks whose prompts are made by a PromptFormat.
void add_chat_option(CLI::App& app, EvalSettings& settings);
/// What --chat makes of prompts for this model. Throws kUsage when there is no template.
eval::PromptFormat prompt_format(const EvalSettings& settings, const Model& model);

/// Every policy with every budget and kernel, each configuration once. `model` as in
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
  /// Throws kContextExceeded unless the model can read `n_tokens` and answer with `n_predict` (0:
  /// the answer is among the tokens).
  void check_length(int64_t n_tokens, int64_t n_predict) const;
  /// Asks what the file lacks and prints the summary: run_items, then finish(summary_table).
  void ask(const std::vector<eval::Item>& items);
  /// Shows how much of the run is done, for tasks that measure more finely than by prompts.
  void show_progress(const std::string& title, double fraction);
  /// Ends the progress display, writes the page of the whole record file, if asked for, and prints
  /// the table, also when the page fails.
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
/// Questions for qa, made by rule; no model answers.
Command add_eval_make_qa(CLI::App& eval);
Command add_eval_turns(CLI::App& eval, const CommonSettings& common);
/// Compares what the tasks wrote.
Command add_eval_compare(CLI::App& eval);

}  // namespace snapkv::cli
