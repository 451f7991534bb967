// SPDX-License-Identifier: MIT
// The loop that turns a prefilled session into an answer. Used by generate, demo and needle.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "snapkv/engine.h"

namespace snapkv::cli {

enum class StopReason { eos, stop, paragraph, length, context, cancelled };
/// "eos", "stop", "paragraph", "length", "context", "cancelled"
std::string_view name(StopReason reason);

struct GenerationLimits {
  int64_t n_predict = -1;   ///< tokens; negative: until the model ends or the context is full
  bool one_paragraph = false;  ///< the answer ends at the first empty line after some text
  bool ignore_eos = false;  ///< never choose a token that ends the answer
  std::vector<std::string> stops = {};  ///< the answer ends before the first of these in its text
};

struct Generation {
  std::vector<int32_t> ids;  ///< with those of a stop string
  std::string text;          ///< valid UTF-8, without the stop string
  std::string stop;          ///< the stop string that was found
  StopReason stop_reason = StopReason::length;
};

/// Called after every token with the text that is certain since the call before (TextStream), which
/// may be none, and the number of tokens so far; after the last one with what was held back.
using TokenFn = std::function<void(std::string_view text, int64_t n)>;

/// Samples and decodes until a limit, the end of the answer or Ctrl-C (signals.h). Appends to
/// `generation`, so that it holds what there was when an Error ends it.
void generate(Session& session, Sampler& sampler, const GenerationLimits& limits,
              const TokenFn& on_token, Generation& generation);

}  // namespace snapkv::cli
