// SPDX-License-Identifier: MIT
// What config.json says of LFM2's layers: the convolutions that most of them have, and the widths
// and experts of their feed-forward networks.
#pragma once

#include "huggingface/config.h"

namespace snapkv::huggingface {

/// Reads Config::has_attention and conv_kernel.
void read_convolutions(const JsonFields& c, Config& config);

/// Reads Config::n_ff of a dense model, which may have to be adjusted.
void read_lfm2_width(const JsonFields& c, Config& config);

/// Reads which layers have experts, and how a token's are chosen.
void read_lfm2_experts(const JsonFields& c, Config& config);

}  // namespace snapkv::huggingface
