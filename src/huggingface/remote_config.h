// SPDX-License-Identifier: MIT
// What config.json of the classes in remote_mappings.h says beside what DenseTraits have.
#pragma once

#include "huggingface/config.h"
#include "huggingface/json_file.h"
#include "huggingface/keys.h"

namespace snapkv::huggingface {

/// Whether the matrix of the logits has rows of length 1, as in Baichuan 2.
void read_baichuan(const JsonFields& c, Config& config);

/// The scales, and the length from which on attention is sparse.
void read_minicpm(const JsonFields& c, Config& config);
void add_minicpm_keys(const Config& config, Keys& keys);

void read_qwen1_sizes(const JsonFields& c, Config& config);
/// The context up to which neither rotation nor queries are scaled.
void read_qwen1(const JsonFields& c, Config& config);
void add_qwen1_keys(const Config& config, Keys& keys);

void check_codeshell(const JsonFields& c, Config& config);

void read_plamo_sizes(const JsonFields& c, Config& config);

/// Heads and widths of each layer.
void read_openelm_sizes(const JsonFields& c, Config& config);
void check_openelm(const JsonFields& c, Config& config);
void add_openelm_keys(const Config& config, Keys& keys);

void read_chatglm_sizes(const JsonFields& c, Config& config);
/// The rotation's base, and what is refused.
void read_chatglm(const JsonFields& c, Config& config);

}  // namespace snapkv::huggingface
