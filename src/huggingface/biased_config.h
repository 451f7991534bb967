// SPDX-License-Identifier: MIT
// What config.json of the classes in biased_mappings.h says beside what DenseTraits have.
#pragma once

#include <string>

#include "huggingface/config.h"
#include "huggingface/json_file.h"
#include "huggingface/keys.h"
#include "huggingface/shards.h"

namespace snapkv::huggingface {

void read_mpt_sizes(const JsonFields& c, Config& config);
/// The position biases, the limit of queries, keys and values, and what is refused.
void read_mpt(const JsonFields& c, Config& config);

/// The factors of embeddings and logits, which GGUF has in their matrices.
void read_jais(const JsonFields& c, Config& config);
/// Says these factors to models that are read in place.
void add_jais_factor_keys(const Config& config, Keys& keys);
/// Fails if the slopes of Jais' position biases, which folders may have as a tensor, are not those
/// that are computed.
void check_jais_slopes(const Config& config, const Shards& shards);

}  // namespace snapkv::huggingface
