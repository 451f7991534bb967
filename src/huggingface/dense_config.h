// SPDX-License-Identifier: MIT
// What config.json of dense models says (dense_mappings.h), by their DenseTraits.
#pragma once

#include <string>
#include <string_view>

#include "huggingface/config.h"
#include "huggingface/dense_traits.h"
#include "huggingface/json_file.h"
#include "huggingface/keys.h"
#include "huggingface/shards.h"

namespace snapkv::huggingface {

/// Whether the rows of queries and keys are rotated; else positions are learned vectors or biases of
/// scores.
bool has_rotation(const Config& config);

/// GELU's and SiLU's names in GGUF's words: "gelu", "gelu_pytorch_tanh", "silu"; others unchanged.
std::string activation_name(std::string_view name, std::string_view architecture);

/// Sets the activation, which config.json calls `activation`, if the mapping's class may have it.
/// Returns whether it may.
bool set_activation(std::string_view activation, Config& config);

/// The key of a value: its name, or that of older files if the value is missing under this one.
std::string_view present_key(const JsonFields& c, std::string_view name, std::string_view older);

/// The sizes, the epsilon and the context.
void read_dense_sizes(const JsonFields& c, Config& config);

/// Rotation, windows, scales and switches.
void read_dense(const JsonFields& c, Config& config);

/// Fails if logits are made otherwise than GGUF can say.
void check_dense_output(const JsonFields& c, const Config& config);

void add_dense_keys(const Config& config, Keys& keys);

/// The numbers of Apertus' activation, which its folders have as tensors.
void add_xielu_keys(const Config& config, const Shards& shards, const std::string& folder,
                    Keys& keys);

}  // namespace snapkv::huggingface
