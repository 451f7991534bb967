// SPDX-License-Identifier: MIT
// What config.json says of Kimi Linear: Kimi Delta Attention in most layers, latent attention
// without a rotation in the others, and experts.
#pragma once

#include "huggingface/config.h"

namespace snapkv::huggingface {

/// Reads what layers have, and the sizes of their attention.
void read_kimi_linear(const JsonFields& c, Config& config);
void read_kimi_experts(const JsonFields& c, Config& config);

/// The keys of all this.
void add_kimi_linear_keys(const Config& config, Keys& keys);

}  // namespace snapkv::huggingface
