// SPDX-License-Identifier: MIT
// What config.json says of models whose layers are mixers of Mamba or Mamba-2 alone: Mamba, Falcon
// Mamba, and Mamba 2.
#pragma once

#include "huggingface/config.h"

namespace snapkv::huggingface {

/// The sizes that these classes have in common.
void read_mamba_sizes(const JsonFields& c, Config& config);

/// Reads Config::mamba and conv_kernel.
void read_mamba(const JsonFields& c, Config& config);
/// Reads Config::mamba2 and conv_kernel.
void read_mamba2(const JsonFields& c, Config& config);

/// The keys of Config::mamba.
void add_mamba_keys(const Config& config, Keys& keys);

}  // namespace snapkv::huggingface
