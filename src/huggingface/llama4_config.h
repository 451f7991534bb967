// SPDX-License-Identifier: MIT
// The fields of Llama 4's config.json that say which layers have experts and how they attend.
#pragma once

#include "huggingface/config.h"
#include "huggingface/json_file.h"
#include "huggingface/keys.h"

namespace snapkv::huggingface {

/// Sets the widths of experts and dense networks, and which layers have which. Throws
/// Error{kBadModel} naming the field, its value and the supported ones, as the others do.
void read_llama4_experts(const JsonFields& c, Config& config);
/// Sets the rest of Config::llama4.
void read_llama4_attention(const JsonFields& c, Config& config);

void add_llama4_keys(const Config& config, Keys& keys);

}  // namespace snapkv::huggingface
