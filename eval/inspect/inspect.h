// SPDX-License-Identifier: MIT
// Inspect: reads one prompt and gathers what the cache keeps and what the tokens attend to, as the
// data of a page (docs/pictures.md lists its fields).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "eval/common/record_file.h"
#include "snapkv/engine.h"

namespace snapkv::eval {

struct InspectOptions {
  std::shared_ptr<const Model> model;
  SessionOptions session;
  std::vector<int32_t> tokens;  ///< the prompt
  bool shows_control = false;   ///< also show the texts of control tokens, as in chat templates
  /// More groups of tokens whose attention is shown, besides the window and its tokens.
  std::vector<AttentionProbe::Range> spotlights;
  int64_t text_limit = 131072;  ///< most tokens whose text is on the page: the first and the last
  ProgressFn progress = {};
};

/// Throws what Session::prefill throws, and kUsage for a spotlight beyond the prompt.
Json inspect(const InspectOptions& options);

/// The text of each token, such that all texts together are the prompt's text and each is valid
/// UTF-8: if several tokens form a character, the last of them gets its bytes; bytes that cannot be
/// UTF-8 become U+FFFD. `special`: control tokens have a text too.
std::vector<std::string> token_texts(const Model& model, std::span<const int32_t> tokens,
                                     bool special = false);

}  // namespace snapkv::eval
