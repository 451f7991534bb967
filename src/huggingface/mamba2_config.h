// SPDX-License-Identifier: MIT
// What config.json says of models with mixers of Mamba-2: Granite 4 and Nemotron-H.
#pragma once

#include "huggingface/config.h"

namespace snapkv::huggingface {

/// Whether the folder's layers have experts as the mapping's do, where a class has two mappings.
bool has_layers_of(const GgufMapping& mapping, const JsonFields& c);

/// Reads Config::parts of Nemotron-H; returns the number of layers.
int64_t read_parts(const JsonFields& c, Config& config);

/// Read Config::mamba2, has_attention, conv_kernel and what the family has besides.
void read_granite_hybrid(const JsonFields& c, Config& config);
void read_nemotron_h(const JsonFields& c, Config& config);
void read_nemotron_experts(const JsonFields& c, Config& config);

/// The keys of all this but attention's heads.
void add_mamba2_keys(const Config& config, Keys& keys);

}  // namespace snapkv::huggingface
