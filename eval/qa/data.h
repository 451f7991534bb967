// SPDX-License-Identifier: MIT
// Questions about texts, from a JSONL file of the user. Everything is read and checked when it is
// opened, so that a run does not fail after hours.
//
//   {"id": "a1", "context": "The bridge was ...", "question": "When was the bridge built?",
//    "answers": ["1862", "in 1862"], "kind": "prose"}
//   {"text": "prose/bridge.txt", "begin": 0, "end": 30000, "kind": "prose", "questions": [
//     {"id": "b1", "question": "Who built it?", "answers": ["Ann Lee"], "at": 512},
//     {"id": "b2", "question": "Sum it up.", "answers": ["A bridge ..."], "metric": "rouge-l"}]}
//
// With `suffix` there is no question: the model writes what stands between the text and the suffix.
//
//   {"id": "c1", "text": "code/a.py", "end": 9000, "suffix": "\n    return size\n",
//    "answers": ["_size_of"], "metric": "begins"}
#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <vector>

namespace snapkv::eval {

enum class QaMetric { contains, exact, f1, rouge_l, begins };
/// "rouge-l"
const char* name(QaMetric metric);

struct QaContext {
  std::string name;  ///< "prose/bridge.txt", "prose/bridge.txt [0, 30000)", "questions.jsonl:1"
  std::string text;
  uint64_t fingerprint = 0;  ///< of the text
};

/// A gap in a text: the context ends where it begins.
struct QaGap {
  std::string suffix;  ///< the text after the gap; empty: the question has no gap
  size_t rest = 0;     ///< byte of the context, the beginning of a line: join_texts() puts other
                       ///< texts before it
  std::string name;    ///< a name in the answer; empty: nobody says
  size_t defined = 0;  ///< byte of the context where this name stands
};

struct QaQuestion {
  std::shared_ptr<const QaContext> context;
  std::string id, question, lead, kind, half;
  std::string title;  ///< of the text; without the field, the name of its file; may be empty
  std::vector<std::string> answers;  ///< all accepted answers, at least one
  QaMetric metric = QaMetric::contains;
  QaGap gap = {};  ///< with a suffix, there is neither question nor lead
  /// Questions about the same text that a conversation has before this one (ask_after_others()).
  std::vector<std::shared_ptr<const QaQuestion>> earlier = {};
  std::string place;  ///< "questions.jsonl:3"
};

/// Reads the questions of a file. Questions about one context are together; contexts are in the
/// order of their first questions. `texts`: the folder that the fields `text` are relative to; if
/// empty, no line may have that field. `half`: only questions of this half; empty: all. Throws
/// kRuntime if a file cannot be read; kUsage naming file, line and field for a line that is not a
/// question or an answer that is not at the place `at`; and kUsage if no question has that half.
std::vector<QaQuestion> read_qa(const std::string& path, const std::string& texts,
                                const std::string& half = {});
/// The same from the file's content; `path` names it in messages.
std::vector<QaQuestion> parse_qa(std::istream& content, const std::string& path,
                                 const std::string& texts, const std::string& half = {});
/// Whether the model is to fill a gap.
inline bool fills_gap(const QaQuestion& question) { return !question.gap.suffix.empty(); }
/// The first `n` questions of each kind.
std::vector<QaQuestion> first_of_each_kind(std::vector<QaQuestion> questions, int64_t n);

/// The score in [0, 1], the best over the accepted answers.
double qa_score(QaMetric metric, const std::vector<std::string>& answers,
                const std::string& answer);

}  // namespace snapkv::eval
