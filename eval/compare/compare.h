// SPDX-License-Identifier: MIT
// Compares records of `snapkv eval` that have a score, prompt by prompt: two configurations, two
// models, two versions. Called by app/cli/eval/compare.cpp.
#pragma once

#include <string>

namespace snapkv::eval {

struct CompareOptions {
  std::string file_a = {};
  std::string file_b = {};  ///< may be the same
  /// Conditions (scores.h) that the records of a side meet.
  std::string a = {}, b = {};
  /// Instead of `a`: side A, with which every configuration of side B is compared.
  std::string base = {};
  bool any_model = false;  ///< the sides may be of different models
  /// Only prompts count that the full cache answers right (paired.h), by records of either file.
  bool of_full = false;
};

/// Markdown: what is compared, a row for each configuration of side B, and what was left out.
///
/// Without a base, each side must have one configuration, or two files must have several and no
/// conditions: then each is compared with the same one in the other file. Throws kUsage when that
/// is not so, naming the configurations, when the models differ, when a prompt has two scores on
/// one side, and when no prompt is on both; and what read_scores() throws.
std::string compare_records(const CompareOptions& options);

}  // namespace snapkv::eval
