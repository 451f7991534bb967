// SPDX-License-Identifier: MIT
// Questions about real texts: what the full cache answers, and which of these questions a
// compressed one answers too. Called by app/cli/eval/qa.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "eval/common/prompt_format.h"
#include "eval/common/runner.h"
#include "eval/qa/data.h"

namespace snapkv::eval {

/// From this score on a question counts as answered.
inline constexpr double kQaAnswered = 0.5;

struct QaOptions {
  PromptFormat format = PromptFormat::plain();
  int64_t n_predict = 32;  ///< tokens of an answer, at most; it also ends with its first line
  int64_t max_length = 0;  ///< tokens: longer prompts are left out; 0: they are an error
};

/// What is before the question and what begins the answer, as the format wants it.
PromptText qa_text(const QaQuestion& question, const PromptFormat& format);

struct QaItems {
  std::vector<Item> items;  ///< a column for each kind, a group for each context
  int64_t n_left_out = 0;   ///< longer than QaOptions::max_length
};
/// Throws kContextExceeded, naming text and question, when a prompt that is not left out and its
/// answer exceed the model's context; kUsage when all are left out.
QaItems qa_items(std::shared_ptr<const Model> model, const std::vector<QaQuestion>& questions,
                 const QaOptions& options);

/// Markdown: how many questions there are and how many of them the full cache answers, for each
/// kind; a row per other configuration with the share of those that it answers too, its 95% Wilson
/// interval, and the mean size of its cache. The run needs policy full.
std::string qa_table(const RunOptions& run, const QaItems& items, const RecordFile& file);

}  // namespace snapkv::eval
