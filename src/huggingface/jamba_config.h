// SPDX-License-Identifier: MIT
// What config.json says of Jamba: mixers of Mamba in most layers, experts in some.
#pragma once

#include "huggingface/config.h"

namespace snapkv::huggingface {

/// Whether the folder's layers have experts as the mapping's do. `c` is of that class.
bool has_jamba_layers_of(const GgufMapping& mapping, const JsonFields& c);

/// Reads Config::mamba, has_attention and conv_kernel.
void read_jamba(const JsonFields& c, Config& config);

/// The keys of all this but attention's heads.
void add_jamba_keys(const Config& config, Keys& keys);

}  // namespace snapkv::huggingface
