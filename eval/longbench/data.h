// SPDX-License-Identifier: MIT
// LongBench's files (arXiv 2308.14508): the published JSONL files, one per task, and the two JSON
// files with prompts and answer lengths. All are in the user's folder. Everything is checked when
// it is opened, so that a run does not fail after hours.
//
//   DIR/hotpotqa.jsonl   {"input": "...", "context": "...", "answers": ["..."], "length": 9000,
//                         "dataset": "hotpotqa", "language": "en", "all_classes": null,
//                         "_id": "..."}
//   DIR or DIR/config: dataset2prompt.json   {"hotpotqa": "... {context} ... {input} ..."}
//                      dataset2maxlen.json   {"hotpotqa": 32}
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace snapkv::eval {

enum class LongbenchMetric { qa_f1, rouge_l, classification, retrieval, count, code };
/// "F1", "ROUGE-L", "classification", "retrieval", "count", "similarity"
const char* name(LongbenchMetric metric);

struct LongbenchTask {
  std::string name;  ///< also the name of the file: "hotpotqa"
  LongbenchMetric metric = LongbenchMetric::qa_f1;
  bool first_line = false;  ///< only the answer's first line counts
  bool chinese = false;
  bool supported = true;  ///< false if the metric counts Chinese words, which needs segmentation

  /// Whether the prompts are chat messages. Prompts with worked examples and prompts of code are
  /// texts to continue.
  bool is_message() const { return !first_line && metric != LongbenchMetric::code; }
};
/// LongBench's 21 tasks, in the order of its paper.
const std::vector<LongbenchTask>& longbench_tasks();

/// A line of a task's file.
struct LongbenchRow {
  std::string id, input, context, language;
  std::vector<std::string> answers;  ///< at least one
  std::vector<std::string> classes;  ///< only for classification, else empty
  int64_t length = 0;                ///< words (in Chinese: characters), according to the file
};
/// Throws kUsage, naming `where` and the field, if the line is not a row of the task.
LongbenchRow parse_longbench_row(const std::string& line, const LongbenchTask& task,
                                 const std::string& where);

/// The place of a row in its file, so that prompts need not be kept in memory.
struct LongbenchLine {
  int64_t number = 0;  ///< counted from 1
  int64_t offset = 0, n_bytes = 0;
  std::string id;
  uint64_t fingerprint = 0;
};

struct LongbenchSet {
  LongbenchTask task;
  std::string path;
  std::string prompt;     ///< with {context} and {input}
  int64_t n_predict = 0;  ///< tokens of an answer, at most
  std::vector<LongbenchLine> lines;
  int64_t n_lines = 0;  ///< in the file; `lines` may have only the first of them
};

/// Opens the named tasks (none named: every supported task with a file in `folder`) and reads the
/// first `n_lines` rows of each (0: all). `prompts`: the folder of the two JSON files; if empty,
/// `folder`, or else its subfolder config. `left_out`: tasks in the folder that are not supported.
/// Throws kUsage for unknown, unsupported or missing tasks, prompts or lengths, and for a line that
/// is not a row, naming file and line; kRuntime if a file cannot be read.
std::vector<LongbenchSet> open_longbench(const std::string& folder, const std::string& prompts,
                                         const std::vector<std::string>& tasks, int64_t n_lines,
                                         std::vector<std::string>& left_out);

/// Reads the row again. Throws kRuntime if the file has changed.
LongbenchRow read_longbench_row(const LongbenchSet& set, const LongbenchLine& line);

/// The prompt by Python's format(): {context} and {input} are replaced, {{ and }} become braces.
std::string longbench_prompt(const LongbenchSet& set, const LongbenchRow& row);

}  // namespace snapkv::eval
