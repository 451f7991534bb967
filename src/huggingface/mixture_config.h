// SPDX-License-Identifier: MIT
// What config.json says of families with experts whose attention is that of dense models: the
// fields of their experts, and of layers that differ in heads, windows or rotation.
#pragma once

#include <cstdint>
#include <string_view>

#include "huggingface/config.h"
#include "huggingface/json_file.h"

namespace snapkv::huggingface {

/// The names that a class gives to the fields of its experts. Empty: there is no such field.
struct ExpertFields {
  std::string_view count = "num_experts", used = "num_experts_per_tok";
  std::string_view width = "moe_intermediate_size";  // empty: intermediate_size, of all networks
  std::string_view n_shared = {}, n_dense = {};      // shared experts, first layers without experts
  int64_t shared_otherwise = 0, dense_otherwise = 0;  // where config.json says nothing
};

/// Reads numbers and widths of experts and of dense layers.
void read_expert_sizes(const JsonFields& c, const ExpertFields& fields, Config& config);

/// The field of a number, and what it is where config.json says nothing.
struct CountField {
  std::string_view name;
  int64_t otherwise = 1;
};

/// Reads the number of groups of neighbouring experts, and of those that a token uses.
void read_expert_groups(const JsonFields& c, CountField groups, CountField used, Config& config);

/// The number of first layers without experts, of mlp_layer_types: "dense" and "sparse".
int64_t count_dense_layers(const JsonFields& c, const Json& types, int64_t n_layer);

/// Fails if the flag is there and has the other value.
void expect_flag(const JsonFields& c, const char* key, bool expected);

/// Fails if the field is there and is another text.
void expect_text(const JsonFields& c, std::string_view key, std::string_view expected);

/// A size in layer il, where layers differ in heads.
int64_t mixture_size(const Config& config, Size which, int64_t il);

void read_minimax(const JsonFields& c, Config& config);
void read_ernie_moe(const JsonFields& c, Config& config);
void read_hunyuan_moe(const JsonFields& c, Config& config);
void read_dots1(const JsonFields& c, Config& config);
void read_exaone_moe(const JsonFields& c, Config& config);
void read_hy3(const JsonFields& c, Config& config);
void read_afmoe(const JsonFields& c, Config& config);
void read_cohere2moe(const JsonFields& c, Config& config);
void read_granite_swa(const JsonFields& c, Config& config);
void read_mimo2(const JsonFields& c, Config& config);
void read_laguna(const JsonFields& c, Config& config);

void add_ernie_moe_keys(const Config& config, Keys& keys);
void add_hunyuan_moe_keys(const Config& config, Keys& keys);
void add_exaone_moe_keys(const Config& config, Keys& keys);
void add_cohere2moe_keys(const Config& config, Keys& keys);
void add_granite_swa_keys(const Config& config, Keys& keys);
void add_mimo2_keys(const Config& config, Keys& keys);
void add_laguna_keys(const Config& config, Keys& keys);

}  // namespace snapkv::huggingface
