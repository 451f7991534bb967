// SPDX-License-Identifier: MIT
// What config.json says of RWKV 6 and 7, and of models that have their mixers in place of Qwen 2's
// attention.
#pragma once

#include "huggingface/config.h"
#include "huggingface/json_file.h"
#include "huggingface/keys.h"

namespace snapkv::huggingface {

void read_rwkv7(const JsonFields& c, Config& config);
void read_rwkv6(const JsonFields& c, Config& config);
/// ARWKV 7.
void read_arwkv7(const JsonFields& c, Config& config);
/// QRWKV 6.
void read_qrwkv6(const JsonFields& c, Config& config);

/// Does nothing: the sizes of these models are read with all else.
void read_no_layers(const JsonFields& c, Config& config);

void add_rwkv_keys(const Config& config, Keys& keys);

}  // namespace snapkv::huggingface
