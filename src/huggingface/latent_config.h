// SPDX-License-Identifier: MIT
// What config.json says of latent attention, and of the families whose layers all have it: DeepSeek
// V2 and V3, which Kimi K2 and Moonlight are too, GLM-4.7-Flash, Mistral Small 4 and MiniCPM 3.
#pragma once

#include "huggingface/config.h"

namespace snapkv::huggingface {

/// Reads Config::latent.
void read_latent_sizes(const JsonFields& c, Config& config);
/// Reads mscale and mscale_all_dim of YaRN's parameters, `rope`. Fails where GGUF files cannot
/// express what they do.
void read_latent_growth(const JsonFields& rope, Config& config);
/// The keys of latent attention's sizes.
void add_latent_keys(const Config& config, Keys& keys);

/// Of MiniCPM 3, whose layers have it too, and no experts.
void read_minicpm3(const JsonFields& c, Config& config);
void add_minicpm3_keys(const Config& config, Keys& keys);

void read_deepseek(const JsonFields& c, Config& config);
void add_deepseek_keys(const Config& config, Keys& keys);

}  // namespace snapkv::huggingface
