// SPDX-License-Identifier: MIT
// Summaries of whole texts: how many of the facts that a model names with the full cache it names
// with fewer rows, and how many names and numbers it invents.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "eval/common/prompt_format.h"
#include "eval/common/runner.h"
#include "eval/qa/data.h"

namespace snapkv::eval {

struct SummaryOptions {
  PromptFormat format = PromptFormat::plain();
  int64_t n_predict = 256;   ///< most tokens of a summary
  bool has_several = false;  ///< whether each text is several texts one after the other (join.h)
};

/// The first question about each text: what stands for the text where only texts matter.
std::vector<QaQuestion> first_of_each_text(std::vector<QaQuestion> questions);

/// A request for a summary of the text of each question, a column for each kind. Records have the
/// names and numbers of the summary that stand in the text (`facts`: their number, `named`) and
/// those that do not (`strange`, `invented`; facts.h), and ROUGE-L with the summary of the full
/// cache, which is their score. Throws kContextExceeded, naming the text, if a prompt exceeds the
/// model's context together with its summary.
std::vector<Item> summary_items(const std::shared_ptr<const Model>& model,
                                const std::vector<QaQuestion>& texts,
                                const SummaryOptions& options);

/// Markdown with a row for each configuration: the mean size of its cache; how many facts its
/// summaries name, and the share of the full cache's number with the 95% bootstrap interval; how
/// many names and numbers are strange to the texts; the mean ROUGE-L; and the share of each kind of
/// text. The run needs policy full.
std::string facts_table(const RunOptions& run, const std::vector<Item>& items,
                        const RecordFile& file);

}  // namespace snapkv::eval
