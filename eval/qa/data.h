// SPDX-License-Identifier: MIT
// Questions about texts, from a JSONL file of the user. Everything is read and checked when it is
// opened, so that a run does not fail after hours.
//
//   {"id": "a1", "context": "The bridge was ...", "question": "When was the bridge built?",
//    "answers": ["1862", "in 1862"], "kind": "prose"}
//   {"text": "prose/bridge.txt", "begin": 0, "end": 30000, "kind": "prose", "questions": [
//     {"id": "b1", "question": "Who built it?", "answers": ["Ann Lee"], "at": 512},
//     {"id": "b2", "question": "Sum it up.", "answers": ["A bridge ..."], "metric": "rouge-l"}]}
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace snapkv::eval {

enum class QaMetric { contains, exact, f1, rouge_l };
/// "rouge-l"
const char* name(QaMetric metric);

struct QaContext {
  std::string name;  ///< "prose/bridge.txt", "prose/bridge.txt [0, 30000)", "questions.jsonl:1"
  std::string text;
  uint64_t fingerprint = 0;  ///< of the text
};

struct QaQuestion {
  std::shared_ptr<const QaContext> context;
  std::string id, question, lead, kind, half;
  std::vector<std::string> answers;  ///< all accepted answers, at least one
  QaMetric metric = QaMetric::contains;
  std::string place;  ///< "questions.jsonl:3"
};

struct QaChoice {
  std::string half = {};  ///< only questions of this half; empty: all
  int64_t n_samples = 0;  ///< take only the first of each kind; 0: all
};

/// Reads the questions of a file. Questions about one context are together; contexts are in the
/// order of their first questions. `texts`: the folder that the fields `text` are relative to; if
/// empty, no line may have that field. Throws kRuntime if a file cannot be read; kUsage naming
/// file, line and field for a line that is not a question or an answer that is not at the place
/// `at`; and kUsage if `choice` leaves no question.
std::vector<QaQuestion> read_qa(const std::string& path, const std::string& texts,
                                const QaChoice& choice = {});

/// The score in [0, 1], the best over the accepted answers.
double qa_score(QaMetric metric, const std::vector<std::string>& answers,
                const std::string& answer);

}  // namespace snapkv::eval
