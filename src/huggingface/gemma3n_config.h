// SPDX-License-Identifier: MIT
// What config.json says of Gemma 3n's layers: residual streams, gates that must stand out, rows
// that layers share, and inputs of each layer.
#pragma once

#include <cstdint>

#include "huggingface/config.h"

namespace snapkv::huggingface {

/// intermediate_size: one for all layers, or one for each.
int64_t read_gemma3n_widths(const JsonFields& c, Config& config);
/// Reads the rest. Tokens without an input for each layer, which stand for pictures and sound, are
/// left out of the vocabulary.
void read_gemma3n_layers(const JsonFields& c, Config& config);
void add_gemma3n_keys(const Config& config, Keys& keys);

}  // namespace snapkv::huggingface
