// SPDX-License-Identifier: MIT
// Inspect: reads one prompt and gathers what its cache keeps and what its tokens attend to, as the
// data of a page (docs/pictures.md has its fields). Called by inspect/command.cpp.
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
  bool shows_control = false;   ///< the texts of control tokens too: of a chat template's
  /// More groups of tokens whose attention is shown, beside the window and its tokens.
  std::vector<AttentionProbe::Range> spotlights;
  int64_t text_limit = 131072;  ///< tokens whose text is on the page: the first and last of them
  ProgressFn progress = {};
};

/// Throws what Session::prefill throws, and kUsage for a spotlight beyond the prompt.
Json inspect(const InspectOptions& options);

/// Text of each token so that the texts together are the prompt's and each is valid UTF-8: the
/// bytes of a character that several tokens make up go to the last of them; bytes that can't be
/// UTF-8 become U+FFFD. `special`: control tokens have a text too.
std::vector<std::string> token_texts(const Model& model, std::span<const int32_t> tokens,
                                     bool special = false);

}  // namespace snapkv::eval
