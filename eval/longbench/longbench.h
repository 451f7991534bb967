// SPDX-License-Identifier: MIT
// LongBench (arXiv 2308.14508) on the user's copy of its files: prompts, truncation and scores as
// its code makes them; docs/evaluation.md says where this differs. Called by
// app/cli/eval_longbench.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "eval/common/prompt_format.h"
#include "eval/common/runner.h"
#include "eval/longbench/data.h"

namespace snapkv::eval {

struct LongbenchOptions {
  /// Most tokens of a prompt, without a chat template's; 0: the model's context less these and the
  /// answer.
  int64_t max_length = 0;
  bool question_agnostic = false;  ///< prompts need text after the context, which is the question
  PromptFormat format = {};  ///< of tasks whose prompts are messages
};

/// The prompt of a row. One of more than `max_length` (not 0) tokens loses its middle: its text
/// becomes that of the first half of max_length tokens and that of the last half (of a few less
/// where the joined text has more tokens again). `details` says so. Throws kUsage when it should
/// have a question after the context and has none, or that was cut.
Prompt make_longbench(const Model& model, const LongbenchSet& set, const LongbenchLine& line,
                      const LongbenchOptions& options);

/// In [0, 1]: the best over the row's answers; for some tasks only the answer's first line counts.
double longbench_score(const LongbenchTask& task, const std::vector<std::string>& references,
                       const std::vector<std::string>& classes, const std::string& answer);

/// Throws kContextExceeded when max_length and a task's answer exceed the model's context.
std::vector<Item> longbench_items(std::shared_ptr<const Model> model,
                                  const std::vector<LongbenchSet>& sets,
                                  const LongbenchOptions& options);

/// Markdown: a row per task, a column per configuration: 100 times the mean score with its 95%
/// Wilson interval; the mean of the tasks; how many prompts lost their middle, and which tasks'
/// prompts are in the chat template.
std::string longbench_table(const RunOptions& run, const std::vector<LongbenchSet>& sets,
                            const std::vector<Item>& items, const RecordFile& file,
                            const PromptFormat& format = {});

}  // namespace snapkv::eval
