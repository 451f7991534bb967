// SPDX-License-Identifier: MIT
// Questions about texts, from a JSONL file of the user's. Everything is read and checked when it is
// opened, so that a run does not fail after hours. Used by qa.h.
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
  std::vector<std::string> answers;  ///< the accepted ones, at least one
  QaMetric metric = QaMetric::contains;
  std::string place;  ///< "questions.jsonl:3"
};

struct QaChoice {
  std::string half = {};  ///< only questions of this half; empty: all
  int64_t n_samples = 0;  ///< the first of each kind; 0: all
};

/// The questions of a file, those of one context together, contexts in the order of their first
/// questions. `texts`: the folder that fields `text` are relative to; empty: no line may have one.
/// Throws kRuntime when a file can't be read, kUsage naming file, line and field for what is no
/// question, an answer that does not stand where `at` says, and when `choice` leaves none.
std::vector<QaQuestion> read_qa(const std::string& path, const std::string& texts,
                                const QaChoice& choice = {});

/// In [0, 1]: the best over the accepted answers.
double qa_score(QaMetric metric, const std::vector<std::string>& answers,
                const std::string& answer);

}  // namespace snapkv::eval
