// SPDX-License-Identifier: MIT
// generate --compare: one prompt answered with two caches, and the table of what they cost.
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
  SamplerConfig sampler;  ///< of both answers, with the same seed
  std::optional<GrammarMatcher> grammar;
  GenerationLimits limits;
};

/// Reads the prompt twice, one session after the other, and returns both answers with the table.
/// Throws kCancelled after Ctrl-C and its like.
std::string compare_caches(const Comparison& comparison, std::span<const int32_t> prompt,
                           ProgressDisplay& progress, bool colour);

}  // namespace snapkv::cli
