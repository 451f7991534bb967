// SPDX-License-Identifier: MIT
// The scores in a file of records, by model and configuration, and conditions that choose among
// them ("policy=snapkv,budget=256"). Used by compare.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/common/record_file.h"

namespace snapkv::eval {

/// "budget=256": a field of a record's configuration, else of the record itself.
struct Condition {
  std::string field, value;
};
using Conditions = std::vector<Condition>;

/// "policy=snapkv,budget=256"; empty: no condition. Throws kUsage naming `option`, whose text it
/// is.
Conditions parse_conditions(const std::string& text, const std::string& option);
/// Whether a record meets all of them. Numbers are compared as numbers; a configuration leaves out
/// what is off, so that 0 and false are met by a field that is missing. A model may be named
/// without its folder.
bool meets(const Json& record, const Conditions& conditions);

struct Score {
  std::string id;  ///< of the prompt
  double value = 0;
  size_t line = 0;          ///< of the file
  std::vector<bool> meets;  ///< by set of conditions
};

/// The scores of one configuration of one model, in the order of the prompts' ids.
struct ScoreGroup {
  std::string file;
  std::string model;        ///< file name
  std::string fingerprint;  ///< of the model; empty where the records don't have it
  std::string question;     ///< "aware"; empty where the task has none
  Json configuration;
  std::string label;  ///< conditions that only this group meets, see name_groups()
  std::vector<Score> scores;
};

/// The records of a file that have a score.
struct ScoreFile {
  std::string path;
  std::vector<ScoreGroup> groups;  ///< in the order of their first records
  int64_t n_without_score = 0;
  bool torn = false;  ///< the last line is half a record, which counts for nothing
};

/// Reads a file and notes for each record which of `sets` it meets. Of records with the same key
/// the last one counts. Throws kUsage naming file and line where something is no record, or a
/// set's field is in none of them; kRuntime when the file can't be read.
ScoreFile read_scores(const std::string& path, const std::vector<Conditions>& sets);

/// Labels all groups: policy, budget and whatever else tells them apart.
void name_groups(const std::vector<ScoreFile*>& files);

/// Whether two groups are of the same model: by fingerprint, where both have it, else by name.
bool same_model(const ScoreGroup& a, const ScoreGroup& b);

}  // namespace snapkv::eval
