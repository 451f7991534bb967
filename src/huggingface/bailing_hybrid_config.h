// SPDX-License-Identifier: MIT
// What config.json says of Ling 3: Kimi Delta Attention whose decays have a floor in most layers,
// latent attention with a rotation and gates in the others, and experts.
#pragma once

#include "huggingface/config.h"

namespace snapkv::huggingface {

void read_bailing_hybrid(const JsonFields& c, Config& config);
void add_bailing_hybrid_keys(const Config& config, Keys& keys);

}  // namespace snapkv::huggingface
