// SPDX-License-Identifier: MIT
// LongBench (arXiv 2308.14508) on the user's copy of its files. Prompts, truncation and scores
// follow LongBench's own code; docs/evaluation.md lists the differences.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "eval/common/prompt_format.h"
#include "eval/common/runner.h"
#include "eval/longbench/data.h"

namespace snapkv::eval {

struct LongbenchOptions {
  /// The most tokens of a prompt, without those of a chat template; 0: the model's context minus
  /// the template and the answer.
  int64_t max_length = 0;
  bool question_agnostic = false;  ///< prompts need text after the context: the question
  PromptFormat format = {};        ///< for tasks with chat messages as prompts
};

/// Makes the prompt of a row. If it has more than `max_length` tokens (and max_length is not 0),
/// its middle is removed: its text becomes that of the first and of the last max_length / 2 tokens
/// (a few less if the joined text has more tokens than its halves). `details` records this. Throws
/// kUsage if there should be a question after the context, but there is none or it was cut.
Prompt make_longbench(const Model& model, const LongbenchSet& set, const LongbenchLine& line,
                      const LongbenchOptions& options);

/// The score in [0, 1], the best over the row's answers. For some tasks only the first line counts.
double longbench_score(const LongbenchTask& task, const std::vector<std::string>& references,
                       const std::vector<std::string>& classes, const std::string& answer);

/// Throws kContextExceeded if max_length and a task's answer exceed the model's context.
std::vector<Item> longbench_items(std::shared_ptr<const Model> model,
                                  const std::vector<LongbenchSet>& sets,
                                  const LongbenchOptions& options);

/// Markdown with a row per task and a column per configuration: 100 times the mean score with its
/// 95% Wilson interval; the mean over tasks; how many prompts lost their middle; and which tasks'
/// prompts use the chat template.
std::string longbench_table(const RunOptions& run, const std::vector<LongbenchSet>& sets,
                            const std::vector<Item>& items, const RecordFile& file,
                            const PromptFormat& format = {});

}  // namespace snapkv::eval
