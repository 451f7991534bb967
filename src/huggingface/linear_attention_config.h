// SPDX-License-Identifier: MIT
// What config.json says of Qwen 3.5's and Qwen3-Next's layers: linear attention, which most of them
// have, and the rotation of the others.
#pragma once

#include <optional>

#include "huggingface/config.h"

namespace snapkv::huggingface {

/// Reads Config::linear, has_attention and conv_kernel.
void read_linear_attention(const JsonFields& c, Config& config);

/// Reads Config::rope_sections.
void read_rope_sections(const std::optional<JsonFields>& rope, Config& config);

/// The keys of all this.
void add_linear_attention_keys(const Config& config, Keys& keys);

}  // namespace snapkv::huggingface
