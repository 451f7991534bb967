// SPDX-License-Identifier: MIT
// When a prompt is computed with packed weights (linear_runner.h): what the backend says of the
// model's most frequent weight type, whose name is `file_type` (ModelInfo::file_type).
#pragma once

#include <cstdint>
#include <string_view>

#include "backend/backend.h"

namespace snapkv {

/// Whether a prompt or turn of n_tokens is computed with packed weights; shorter ones read the
/// weights directly. The products round differently from those that read the weights directly.
bool packs_weights(const Backend& backend, std::string_view file_type, int64_t n_tokens);

/// Whether packed weights are packed within each product, a piece at a time, which stays in the
/// processor's caches. This suits prompts of few chunks; longer ones pack each matrix once and
/// reuse it.
bool packs_at_use(const Backend& backend, std::string_view file_type, int64_t n_tokens,
                  int64_t chunk);

/// Whether prompts are multiplied in 8 bits, whatever their length.
bool rounds_prompts(const Backend& backend, std::string_view file_type);

}  // namespace snapkv
