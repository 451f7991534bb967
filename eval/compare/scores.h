// SPDX-License-Identifier: MIT
// The scores in a file of records, by model and configuration, and the conditions that select some
// of them ("policy=snapkv,budget=256").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/common/record_file.h"

namespace snapkv::eval {

/// "budget=256": a field of a record's configuration, or else of the record itself.
struct Condition {
  std::string field, value;
};
using Conditions = std::vector<Condition>;

/// Reads "policy=snapkv,budget=256"; an empty text has no conditions. Throws kUsage naming
/// `option`, the option that the text belongs to.
Conditions parse_conditions(const std::string& text, const std::string& option);
/// Whether a record meets all conditions. Numbers are compared as numbers. A configuration leaves
/// out what is off, so a missing field meets 0 and false. A model may be named without its folder.
bool meets(const Json& record, const Conditions& conditions);

struct Score {
  std::string id;  ///< the prompt's id
  double value = 0;
  size_t line = 0;          ///< in the file
  std::vector<bool> meets;  ///< for each set of conditions
};

/// The scores of one configuration of one model, in the order of the prompts' ids.
struct ScoreGroup {
  std::string file;
  std::string model;        ///< file name
  std::string fingerprint;  ///< of the model; empty if the records do not have it
  std::string question;     ///< "aware"; empty if the task has none
  Json configuration;
  std::string label;  ///< conditions that only this group meets, see name_groups()
  std::vector<Score> scores;
};

/// The records of a file that have a score.
struct ScoreFile {
  std::string path;
  std::vector<ScoreGroup> groups;  ///< in the order of their first records
  int64_t n_without_score = 0;
  bool torn = false;  ///< the last line is an unfinished record, which is ignored
};

/// Reads a file and notes for each record which of `sets` it meets. If several records have the
/// same key, the last one counts. Throws kUsage naming file and line if a line is not a record, or
/// if no record has the field of a condition; kRuntime if the file cannot be read.
ScoreFile read_scores(const std::string& path, const std::vector<Conditions>& sets);

/// Labels all groups with policy, budget and whatever else distinguishes them.
void name_groups(const std::vector<ScoreFile*>& files);

/// Whether two groups are of the same model: compares fingerprints if both have one, else names.
bool same_model(const ScoreGroup& a, const ScoreGroup& b);

}  // namespace snapkv::eval
