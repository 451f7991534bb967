// SPDX-License-Identifier: MIT
// The prompts of a text completion, from `prompt` and `suffix`.
#pragma once

#include <string>
#include <vector>

#include "server/api/context.h"
#include "server/api/fields.h"

namespace snapkv::server {

struct CompletionPrompt {
  Prompt prompt;
  std::string text;  ///< the text that `echo` shows
};

/// Returns a prompt for each text or list of tokens. `is_first`: they do not follow a document.
/// Throws ApiError naming the mistake, or that the model can't fill in before a suffix.
std::vector<CompletionPrompt> read_completion_prompts(const Fields& body, const ApiContext& context,
                                                      bool is_first);

}  // namespace snapkv::server
