// SPDX-License-Identifier: MIT
// generate --compare: answers one prompt with two caches, and shows in a table what they cost.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cli/common/progress.h"
#include "cli/generate/generation.h"
#include "snapkv/engine.h"
#include "snapkv/grammar.h"

namespace snapkv::cli {

struct Comparison {
  std::shared_ptr<const Model> model;
  SessionOptions first, second;
  SamplerConfig sampler;  ///< for both answers, with the same seed
  std::optional<GrammarMatcher> grammar;
  GeneratorOptions limits;
  bool is_harmony = false;  ///< RunReport::is_harmony
};

/// Reads and answers the prompt with one cache after the other; returns both answers and the table.
/// Throws kCancelled after Ctrl-C or another signal.
std::string compare_caches(const Comparison& comparison, std::span<const int32_t> prompt,
                           ProgressDisplay& progress, bool colour);

}  // namespace snapkv::cli
