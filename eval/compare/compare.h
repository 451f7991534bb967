// SPDX-License-Identifier: MIT
// Compares records of `snapkv eval` that have a score, prompt by prompt: two configurations, two
// models or two versions.
#pragma once

#include <string>

namespace snapkv::eval {

struct CompareOptions {
  std::string file_a = {};
  std::string file_b = {};  ///< may be the same
  /// The conditions (scores.h) that the records of each side must meet.
  std::string a = {}, b = {};
  /// Instead of `a`: the conditions for side A, with which every configuration of side B is
  /// compared.
  std::string base = {};
  bool any_model = false;  ///< the sides may use different models
  /// Count only prompts that the full cache answers right (paired.h), by records of either file.
  bool of_full = false;
};

/// Markdown: what is compared, a row for each configuration of side B, and what was left out.
///
/// Without a base, either each side must have a single configuration, or there must be two files
/// with several configurations and no conditions; then each one is compared with the same one in
/// the other file. Throws kUsage naming the configurations if neither is the case, and also if the
/// models differ, if a prompt has two scores on one side, or if no prompt is on both sides; and
/// throws what read_scores() throws.
std::string compare_records(const CompareOptions& options);

}  // namespace snapkv::eval
