// SPDX-License-Identifier: MIT
// What config.json says of models with mixers of Mamba-2: Granite 4, Bamba and Nemotron-H.
#pragma once

#include <cstdint>

#include "huggingface/config.h"

namespace snapkv::huggingface {

inline constexpr int64_t kMostScanHeads = 1 << 12, kMostScanWidth = 1 << 12;

/// Fails unless the number of groups, which config.json has as `key`, divides that of heads.
void check_groups(const JsonFields& c, const char* key, const Mamba2Sizes& sizes);
/// Fails if steps are limited.
void check_step_limit(const JsonFields& c);

/// Whether the folder's layers have experts as the mapping's do, where a class has two mappings.
bool has_layers_of(const GgufMapping& mapping, const JsonFields& c);

/// Reads Config::parts of Nemotron-H; returns the number of layers.
int64_t read_parts(const JsonFields& c, Config& config);

/// Read Config::mamba2, has_attention, conv_kernel and what the family has besides.
void read_granite_hybrid(const JsonFields& c, Config& config);
/// Reads the rotation too.
void read_bamba(const JsonFields& c, Config& config);
void read_nemotron_h(const JsonFields& c, Config& config);
void read_nemotron_experts(const JsonFields& c, Config& config);

/// The keys of all this but attention's heads.
void add_mamba2_keys(const Config& config, Keys& keys);

}  // namespace snapkv::huggingface
