// SPDX-License-Identifier: MIT
// How a Hugging Face model rotates queries and keys by position, as config.json says.
#pragma once

#include "huggingface/config.h"

namespace snapkv::huggingface {

/// Reads Config::n_rot, rope and rope_theta_local.
void read_rope(const JsonFields& c, Config& config);

/// Reads Config::query_growth of Mistral's models, whose queries grow with their position as those
/// of Llama 4 do. After read_rope.
void read_query_growth(const JsonFields& c, Config& config);

/// The keys of the rotation.
void add_rope_keys(const Config& config, Keys& keys);

}  // namespace snapkv::huggingface
