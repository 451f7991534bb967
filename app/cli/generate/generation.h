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

enum class StopReason { eos, length, context, cancelled };
/// "eos", "length", "context", "cancelled"
std::string_view name(StopReason reason);

struct GenerationLimits {
  int64_t n_predict = -1;   ///< tokens; negative: until the model ends or the context is full
  bool ignore_eos = false;  ///< never choose a token that ends the answer
};

struct Generation {
  std::vector<int32_t> ids;
  std::string text;  ///< bytes, not always UTF-8
  StopReason stop_reason = StopReason::length;
};

/// Called after every token with its bytes and the number of tokens so far.
using TokenFn = std::function<void(std::string_view piece, int64_t n)>;

/// Samples and decodes until a limit, the end of the answer or Ctrl-C (signals.h). Appends to
/// `generation`, so that it holds what there was when an Error ends it.
void generate(Session& session, Sampler& sampler, const GenerationLimits& limits,
              const TokenFn& on_token, Generation& generation);

}  // namespace snapkv::cli
