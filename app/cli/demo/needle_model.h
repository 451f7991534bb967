// SPDX-License-Identifier: MIT
// The small model of this repository, which finds facts in long texts, and cache options that suit
// it.
#pragma once

#include <cstdint>
#include <memory>

#include "cli/common/settings.h"
#include "snapkv/engine.h"

namespace snapkv::cli {

/// Returns a budget of few rows, so that most of a demo's text is dropped; the model's file sets
/// the rest.
CacheSettings needle_cache_defaults();

/// Loads the model that the settings name, else models/needle.gguf below the current directory,
/// else the one installed beside the binary. Throws kUsage naming these places when there is none.
std::shared_ptr<const Model> load_needle_model(const ModelSettings& settings, ProgressFn progress);

/// A text of at most `length` tokens that hides one fact and ends by asking for it.
struct NeedlePrompt {
  std::string text;
  std::vector<int32_t> tokens;
  std::string digits;      ///< the correct answer
  std::string before;      ///< filler before the line that holds the fact
  std::string fact;        ///< the line that holds the fact
  std::string after;       ///< filler after that line
  std::string question;    ///< with its newlines; the model continues at its end
  int64_t fact_token = 0;  ///< position of the fact's first token
};
struct NeedleSpec {
  int64_t length = 4000;
  double depth = 0.5;  ///< position of the fact in the filler, 0 to 1
  std::string name;    ///< the city that the question is about; empty: chosen by the seed
  uint64_t seed = 1;
};
/// Throws kUsage when the length has no room for the question.
NeedlePrompt make_needle_prompt(const Model& model, const NeedleSpec& spec);

}  // namespace snapkv::cli
