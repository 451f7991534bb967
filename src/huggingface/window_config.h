// SPDX-License-Identifier: MIT
// Which layers of a Hugging Face model have sliding windows, as config.json says.
#pragma once

#include <cstdint>

#include "huggingface/config.h"

namespace snapkv::huggingface {

inline constexpr int64_t kMaxContext = INT32_MAX;

/// Sets Config::sliding_window and has_window. Throws Error{kBadModel} naming file, field, expected
/// and actual.
void read_windows(const JsonFields& c, Config& config);

}  // namespace snapkv::huggingface
