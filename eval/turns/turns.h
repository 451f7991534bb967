// SPDX-License-Identifier: MIT
// Several questions about one document, one after the other, as in a chat: whether the second
// answer is as good as the first when the cache was compressed for the first. Called by
// app/cli/eval/turns.cpp.
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
  int n_questions = 4;  ///< facts in the document, each of which is asked for once
  int n_samples = 10;   ///< documents of each length
  uint64_t seed = 1;
  std::string haystack;    ///< text of the user's files; empty: generated sentences
  int64_t n_predict = 12;  ///< tokens of an answer, at most; it also ends with its first line
  PromptFormat format;     ///< of a chat: each later question is a further message of the user
};

/// Tokens that the questions and answers after the first one take, at most.
int64_t later_tokens(const Model& model, const TurnsOptions& options);

/// A conversation for every length and sample; the score is the share of right answers.
std::vector<Item> turns_items(std::shared_ptr<const Model> model, const TurnsOptions& options);

/// Markdown: a row per configuration, a column per question, over all lengths; then what a later
/// turn costs: the kept rows and the time to read a question.
std::string turns_tables(const RunOptions& run, const TurnsOptions& options,
                         const std::vector<Item>& items, const RecordFile& file);

}  // namespace snapkv::eval
