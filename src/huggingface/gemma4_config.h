// SPDX-License-Identifier: MIT
// What config.json says of Gemma 4's layers: heads of two sizes, rows that layers share, inputs of
// each layer, and experts.
#pragma once

#include <vector>

#include "huggingface/config.h"

namespace snapkv::huggingface {

/// Reads experts and widths, before the windows are known.
void read_gemma4_widths(const JsonFields& c, Config& config);
/// Reads what differs from layer to layer, after the windows.
void read_gemma4_layers(const JsonFields& c, Config& config);
void add_gemma4_keys(const Config& config, Keys& keys);
/// The factors by which layers without a window divide their frequencies: pairs that are not
/// rotated have a huge one. [head_dim / 2]
std::vector<float> proportional_factors(const Config& config);

}  // namespace snapkv::huggingface
