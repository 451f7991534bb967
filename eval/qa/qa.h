// SPDX-License-Identifier: MIT
// Questions about real texts: which of them the full cache answers, and which of these a compressed
// cache answers too.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "eval/common/prompt_format.h"
#include "eval/common/runner.h"
#include "eval/qa/data.h"

namespace snapkv::eval {

/// A question with at least this score counts as answered.
inline constexpr double kQaAnswered = 0.5;

struct QaOptions {
  PromptFormat format = PromptFormat::plain();
  int64_t n_predict = 32;  ///< most tokens of an answer, which also ends after its first line
  int64_t max_length = 0;  ///< tokens; longer prompts are left out; 0: they are an error
};

/// The text before the question and the beginning of the answer, in the form that the format needs;
/// for a question without a gap.
PromptText qa_text(const QaQuestion& question, const PromptFormat& format);

struct QaItems {
  std::vector<Item> items;  ///< one column for each kind, one group for each context
  int64_t n_left_out = 0;   ///< prompts longer than QaOptions::max_length
};
/// Throws kContextExceeded, naming text and question, if a prompt that is not left out exceeds the
/// model's context together with its answer; kUsage if all prompts are left out, or a question has
/// a gap and the format is a chat or the model lacks the tokens to fill it.
QaItems qa_items(std::shared_ptr<const Model> model, const std::vector<QaQuestion>& questions,
                 const QaOptions& options);

/// Markdown: for each kind, how many questions there are and how many the full cache answers; then,
/// for each other configuration, a row with the share of those that it answers too, its 95% Wilson
/// interval, and the mean size of its cache. The run needs policy full.
std::string qa_table(const RunOptions& run, const QaItems& items, const RecordFile& file);

}  // namespace snapkv::eval
