// SPDX-License-Identifier: MIT
// The observations that SnapKV rests on (arXiv 2404.14469, section 3), measured layer by layer: do
// windows of the prompt attend to what generation attends to, does this last, and does it depend on
// the question? docs/evaluation.md has the definitions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "eval/common/record_file.h"
#include "eval/common/runner.h"
#include "snapkv/engine.h"

namespace snapkv::eval {

struct OverlapOptions {
  int64_t length = 4000;         ///< tokens of the prompt, at most
  int64_t n_windows = 20;        ///< windows at the prompt's end that are examined
  int64_t window_length = 128;   ///< tokens
  int64_t n_gen_windows = 4;     ///< windows of the text after the prompt
  int64_t question_window = 32;  ///< part "questions": tokens at the prompt's end that vote
  int64_t n_answer = 16;         ///< part "questions": tokens of an answer
  double p = 0.1;                ///< share of the prefix that a window selects
  double theta = 0.001;          ///< attention above this counts as used
  bool continue_text = false;    ///< the text after the prompt is the file's, not the model's
  bool random_tokens = false;    ///< prompts of random ids, for models without words
  int n_samples = 4;
  uint64_t seed = 1;
  std::string haystack;  ///< text of the user's files; empty: generated sentences
};

/// [n_head_kv][columns]: attention to each column, the mean over a range's queries and the group.
using Attention = std::vector<std::vector<float>>;

/// How well the selection of `voting` covers what `current` uses; both are of one layer.
struct Coverage {
  double overlap = 0;         ///< |I_voting and I_current| / |I_current|, mean over KV heads
  std::optional<double> hit;  ///< the hit rate H over all KV heads; no value if nothing is used
  int64_t n_used = 0;         ///< columns with current > theta, in all KV heads
};
/// I = the max(1, floor(p * columns)) highest columns; ties go to the lower one.
///   H = #(current > theta and column in I_voting) / #(current > theta)
Coverage cover(const Attention& voting, const Attention& current, double p, double theta);

/// Throws kUsage naming the option if the windows do not fit into the prompt.
void validate(const OverlapOptions& options);
/// Tokens of the longest prompt and of the text after it.
int64_t longest_prompt(const OverlapOptions& options);

/// The key of a record. `part`: "windows" or "questions".
std::string overlap_key(const RunOptions& run, const OverlapOptions& options, const char* part,
                        int sample);
/// Runs what the file does not have yet: for every sample the part "windows", and also "questions"
/// unless the tokens are random.
void run_overlap(const RunOptions& run, const OverlapOptions& options, RecordFile& file);
/// Markdown with one row per layer: means over the samples.
std::string overlap_tables(const RunOptions& run, const OverlapOptions& options,
                           const RecordFile& file);

}  // namespace snapkv::eval
