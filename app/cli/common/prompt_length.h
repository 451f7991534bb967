// SPDX-License-Identifier: MIT
// Refuses prompts that are longer than the context, and says so before they are tokenized where it
// can.
#pragma once

#include <string_view>

#include "snapkv/engine.h"

namespace snapkv::cli {

/// Whether refuse_hopeless_length() refuses a text.
bool is_hopeless_length(const Model& model, std::string_view text, int64_t n_ctx);

/// Throws kContextExceeded where a text has more tokens than `n_ctx` (0: the model's own context)
/// even if each is the longest of the vocabulary: hundreds of megabytes take long to tokenize.
void refuse_hopeless_length(const Model& model, std::string_view text, int64_t n_ctx);

/// Throws kContextExceeded, with what would fit and what to do, for a prompt of more tokens than
/// `n_ctx` (0: the model's own context). `may_be_long`: --long would read it.
void refuse_beyond_context(const ModelInfo& model, int64_t n_tokens, int64_t n_ctx,
                           bool may_be_long = false);

}  // namespace snapkv::cli
