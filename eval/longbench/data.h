// SPDX-License-Identifier: MIT
// LongBench's files (arXiv 2308.14508): the published JSONL files, one per task, and the two JSON
// files with its prompts and answer lengths. All come from the user's folder. Everything is checked
// when it is opened, so that a run does not fail after hours. Used by longbench.h.
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
  std::string name;  ///< and of its file: "hotpotqa"
  LongbenchMetric metric = LongbenchMetric::qa_f1;
  bool first_line = false;  ///< only the answer's first line counts
  bool chinese = false;
  bool supported = true;  ///< false: its metric counts Chinese words, which needs segmentation

  /// Whether its prompts are messages of a chat. Those with worked examples and those of code are
  /// texts to continue.
  bool is_message() const { return !first_line && metric != LongbenchMetric::code; }
};
/// LongBench's 21 tasks, in the order of its paper.
const std::vector<LongbenchTask>& longbench_tasks();

/// A line of a task's file.
struct LongbenchRow {
  std::string id, input, context, language;
  std::vector<std::string> answers;  ///< at least one
  std::vector<std::string> classes;  ///< empty, but for classification
  int64_t length = 0;                ///< words (Chinese: characters), as the file says
};
/// Throws kUsage, naming `where` and the field, unless the line is a row of the task.
LongbenchRow parse_longbench_row(const std::string& line, const LongbenchTask& task,
                                 const std::string& where);

/// Where a row is, so that prompts needn't be in memory.
struct LongbenchLine {
  int64_t number = 0;  ///< from 1
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
  int64_t n_lines = 0;  ///< in the file; `lines` may be the first of them
};

/// The tasks named (empty: every supported one that `folder` has a file of), the first `n_lines` of
/// each (0: all). `prompts`: folder of the two JSON files; empty: `folder`, else its subfolder
/// config. `left_out`: tasks of the folder that are not supported. Throws kUsage for unknown,
/// unsupported or missing tasks, prompts or lengths, and for what is no row, naming file and line;
/// kRuntime when a file can't be read.
std::vector<LongbenchSet> open_longbench(const std::string& folder, const std::string& prompts,
                                         const std::vector<std::string>& tasks, int64_t n_lines,
                                         std::vector<std::string>& left_out);

/// The row again. Throws kRuntime when the file is no longer what it was.
LongbenchRow read_longbench_row(const LongbenchSet& set, const LongbenchLine& line);

/// Python's format(): {context} and {input} replaced, {{ and }} are braces.
std::string longbench_prompt(const LongbenchSet& set, const LongbenchRow& row);

}  // namespace snapkv::eval
