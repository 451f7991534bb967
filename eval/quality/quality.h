// SPDX-License-Identifier: MIT
// `snapkv eval quality`: how many of its answers a model keeps when only some rows of its cache are
// kept, in a given time. It asks questions about texts, and about long documents made of them, with
// the full cache and with each number of rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "eval/common/prompt_format.h"
#include "eval/common/runner.h"
#include "eval/qa/data.h"

namespace snapkv::eval {

/// The questions of eval/texts of one half, by default those to report results on, which are part
/// of the program. `texts`: the folder with the texts. Throws kUsage if it, or a text, is missing.
std::vector<QaQuestion> built_in_questions(const std::string& texts,
                                           const std::string& half = "report");

struct QualityOptions {
  PromptFormat format = PromptFormat::plain();
  int64_t n_predict = 32;  ///< most tokens of an answer, which also ends after its first line
  double seconds = 600;    ///< no question is begun later, except the first about texts
  /// Whether to ask about documents of several texts (join.h) too.
  bool asks_documents = true;
  /// Tokens of such a document; 0: 16000, or 8000 where context or time do not suffice for that, or
  /// no documents.
  int64_t n_document = 0;
};

/// Questions about prompts of one kind, and how many of them are answered.
struct QualityPart {
  std::string name;                     ///< "texts", "documents"
  int64_t n_questions = 0;              ///< asked or not
  int64_t n_asked = 0, n_contexts = 0;  ///< questions, and texts or documents that they are about
  double n_tokens = 0;                  ///< of a prompt, mean
  int64_t n_answered = 0;               ///< by the full cache
  std::vector<int64_t> n_kept;          ///< [rows] of these, with so many rows
  int64_t n_kept_auto = 0;              ///< of these, with the budget kAutoBudget
};

struct QualityResult {
  std::string model, policy;
  bool is_chat = false;
  double seconds = 0;
  std::vector<int64_t> rows;       ///< kept, ascending
  std::vector<QualityPart> parts;  ///< at least one
  int64_t n_memory_tokens = 0;     ///< the length for which the sizes of caches are given
  size_t full_bytes = 0;           ///< of the full cache
  std::vector<size_t> bytes;       ///< [rows] of the compressed one
  /// Of the compressed ones with the budget kAutoBudget, mean over the questions; nothing where
  /// that was not tried.
  std::optional<double> auto_bytes = {};
  std::vector<std::string> remarks = {};  ///< what was not asked, and why
};

/// Asks what the record file does not have yet. The first configuration of `run` is policy full,
/// the others are one policy with ascending budgets, the last one perhaps kAutoBudget. Throws what
/// run_items(), qa_items() and join_texts() throw.
QualityResult measure_quality(const RunOptions& run, const std::vector<QaQuestion>& questions,
                              const QualityOptions& options, RecordFile& file);

/// The fewest rows with which at least 98% of the answers are kept, all parts together, else the
/// most rows: their index. The full cache must have answered something.
size_t enough_rows(const QualityResult& result);
/// The share of the answers that are kept with rows[i], all parts together.
double kept_share(const QualityResult& result, size_t i);
/// The same with the budget kAutoBudget.
double kept_share_auto(const QualityResult& result);
int64_t count_answered(const QualityResult& result);

/// A sentence that says how many rows are enough, a Markdown table, and what was asked.
std::string quality_report(const QualityResult& result);
/// The same as an object; docs/evaluation.md names its fields.
Json quality_json(const RunOptions& run, const QualityResult& result);
/// The share of answers kept against the rows, a line for each part, as SVG that follows the
/// viewer's light or dark theme. The full cache must have answered something.
std::string quality_picture(const QualityResult& result);

}  // namespace snapkv::eval
