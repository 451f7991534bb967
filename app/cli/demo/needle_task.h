// SPDX-License-Identifier: MIT
// A needle in a haystack: filler text, somewhere in it one fact, at the end a question about it, in
// the format that models/needle.gguf was trained on. Used by the demo and needle commands.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/settings.h"
#include "cli/generate/generation.h"
#include "eval/common/haystack.h"
#include "snapkv/engine.h"

namespace snapkv::cli {

/// What the trained model needs: a kernel that spans the fact's digits, and few rows.
CacheSettings needle_cache_defaults();

/// The options that the commands share.
struct NeedleTaskSettings {
  ModelSettings model;
  CacheSettings cache = needle_cache_defaults();
  uint64_t seed = 1;
};
/// `seed_help`: of --seed.
void add_needle_task_options(CLI::App& app, NeedleTaskSettings& settings, const char* seed_help);
/// Loads the model of the settings, else models/needle.gguf below the current directory, else the
/// installed one beside the binary. Throws kUsage naming the places when there is none.
std::shared_ptr<const Model> load_needle_model(const ModelSettings& settings, ProgressFn progress);

struct NeedleSpec {
  int64_t length = 4000;  ///< tokens of the whole prompt, at most
  double depth = 0.5;     ///< of the fact in the filler, 0 to 1
  std::string name;       ///< of the city asked about; empty: chosen by the seed
  uint64_t seed = 0;
};

struct NeedlePrompt {
  std::string text;
  std::vector<int32_t> tokens;
  std::string name;
  std::string digits;              ///< the answer
  std::string fact;                ///< the line that holds it
  int64_t fact_token = 0;          ///< about where it begins
  std::vector<std::string> lines;  ///< of the filler, for showing
  size_t fact_line = 0;            ///< the fact stands before this one
  std::string question;            ///< with its newlines, up to where the model continues
};

/// Throws kUsage when the length has no room for the question.
NeedlePrompt make_needle_prompt(const Model& model, const eval::Haystack& haystack,
                                const NeedleSpec& spec);

/// The cities that the model was trained with.
const std::vector<std::string>& needle_names();

/// What the model answered, up to the full stop or line end: " 48213.\n..." -> "48213"
std::string answer_of(std::string_view text);

/// One prompt read into a new session and continued greedily by n_predict tokens.
struct NeedleRun {
  Generation generation;
  SessionStats after_prefill;
  SessionStats at_end;
  std::string answer;
  bool right = false;
};
/// Throws kCancelled after Ctrl-C.
NeedleRun run_needle(const std::shared_ptr<const Model>& model, const SessionOptions& options,
                     const NeedlePrompt& prompt, int64_t n_predict, const ProgressFn& progress);

}  // namespace snapkv::cli
