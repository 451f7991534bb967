// SPDX-License-Identifier: MIT
// The prompts of a text completion: `prompt`, `suffix`. Used by completions.cpp.
#pragma once

#include <string>
#include <vector>

#include "server/api/context.h"
#include "server/api/fields.h"

namespace snapkv::server {

struct CompletionPrompt {
  Prompt prompt;
  std::string text;  ///< as `echo` shows it
};

/// One for each text or list of tokens. `is_first`: they do not follow a document. Throws ApiError
/// naming what is wrong, and where the model can't fill in before a suffix.
std::vector<CompletionPrompt> read_completion_prompts(const Fields& body, const ApiContext& context,
                                                      bool is_first);

}  // namespace snapkv::server
