// SPDX-License-Identifier: MIT
// Answers of the commands: Generator until Ctrl-C, with the text put together.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "snapkv/generator.h"

namespace snapkv::cli {

struct Generation {
  std::vector<int32_t> ids;  ///< including those of the stop string
  std::string text;          ///< valid UTF-8, without the stop string
  std::string stop;          ///< the stop string that was found
  StopReason stop_reason = StopReason::length;
  int64_t n_drafted = 0;   ///< tokens that were guessed and checked (SessionOptions::draft)
  int64_t n_accepted = 0;  ///< of them, those that were right
};

/// Called after every token with the text that has become certain since the last call (TextStream),
/// which may be empty, and the number of tokens so far; after the last token, with the text that
/// was held back.
using TokenFn = std::function<void(std::string_view text, int64_t n)>;

/// Samples and decodes until a limit, the end of the answer or Ctrl-C (signals.h). Appends to
/// `generation`, so that it holds the tokens so far if an Error ends it.
void generate(Session& session, Sampler& sampler, const GeneratorOptions& limits,
              const TokenFn& on_token, Generation& generation);

}  // namespace snapkv::cli
