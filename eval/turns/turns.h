// SPDX-License-Identifier: MIT
// Several questions about one document, one after another, as in a chat: is the second answer as
// good as the first if the cache was compressed for the first?
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "eval/common/prompt_format.h"
#include "eval/common/runner.h"

namespace snapkv::eval {

struct TurnsOptions {
  std::vector<int64_t> lengths = {1000, 2000, 4000,
                                  8000};  ///< tokens of document and first question
  int n_questions = 4;                    ///< facts in the document, each asked for once
  int n_samples = 10;                     ///< documents for each length
  uint64_t seed = 1;
  std::string haystack;    ///< text of the user's files; empty: generated sentences
  int64_t n_predict = 12;  ///< most tokens of an answer, which also ends after its first line
  PromptFormat format;     ///< in a chat, each later question is a further user message
};

/// The most tokens that the questions and answers after the first one can take.
int64_t later_tokens(const Model& model, const TurnsOptions& options);

/// One conversation for every length and sample; its score is the share of right answers.
std::vector<Item> turns_items(std::shared_ptr<const Model> model, const TurnsOptions& options);

/// Markdown with a row per configuration and a column per question, over all lengths; then the cost
/// of a later turn: the kept rows and the time to read a question.
std::string turns_tables(const RunOptions& run, const TurnsOptions& options,
                         const std::vector<Item>& items, const RecordFile& file);

}  // namespace snapkv::eval
