// SPDX-License-Identifier: MIT
// Which layers of a Hugging Face model have sliding windows, as config.json says.
#pragma once

#include <cstdint>
#include <string>

#include "huggingface/config.h"

namespace snapkv::huggingface {

inline constexpr int64_t kMaxContext = INT32_MAX;

/// `layer_types` as text, one letter a layer: "sssssf" (s: a window, f: none); empty where
/// config.json has none.
std::string read_layer_types(const JsonFields& c, const Config& config);

/// Sets Config::sliding_window and has_window. Throws Error{kBadModel} naming file, field, expected
/// and actual.
void read_windows(const JsonFields& c, Config& config);

}  // namespace snapkv::huggingface
