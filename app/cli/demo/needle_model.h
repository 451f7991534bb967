// SPDX-License-Identifier: MIT
// The small model of this repository, which finds facts in long texts, and the cache options that
// suit it. Used by the demo and explain commands.
#pragma once

#include <cstdint>
#include <memory>

#include "cli/common/settings.h"
#include "snapkv/engine.h"

namespace snapkv::cli {

/// Few rows, so that most of a demo's text is dropped; the rest is as the model's file says.
CacheSettings needle_cache_defaults();

/// Loads the model of the settings, else models/needle.gguf below the current directory, else the
/// installed one beside the binary. Throws kUsage naming the places when there is none.
std::shared_ptr<const Model> load_needle_model(const ModelSettings& settings, ProgressFn progress);

/// A text of at most `length` tokens that hides one fact and ends by asking for it.
struct NeedlePrompt {
  std::string text;
  std::vector<int32_t> tokens;
  std::string digits;      ///< the answer
  std::string before;      ///< filler before the line that holds the fact
  std::string fact;        ///< that line
  std::string after;       ///< filler after it
  std::string question;    ///< with its newlines, up to where the model continues
  int64_t fact_token = 0;  ///< where the fact begins
};
struct NeedleSpec {
  int64_t length = 4000;
  double depth = 0.5;  ///< of the fact in the filler, 0 to 1
  std::string name;    ///< of the city asked about; empty: chosen by the seed
  uint64_t seed = 1;
};
/// Throws kUsage when the length has no room for the question.
NeedlePrompt make_needle_prompt(const Model& model, const NeedleSpec& spec);

}  // namespace snapkv::cli
