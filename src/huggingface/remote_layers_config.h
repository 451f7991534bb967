// SPDX-License-Identifier: MIT
// What config.json says of models without experts that transformers has no class for: their folders
// bring their own Python code.
#pragma once

#include <string>
#include <string_view>

#include "huggingface/config.h"
#include "huggingface/json_file.h"
#include "huggingface/keys.h"
#include "huggingface/shards.h"

namespace snapkv::huggingface {

/// The names that a class gives to fields of sizes, and what these are where config.json does not
/// say.
struct RemoteSizes {
  std::string_view width = "intermediate_size";  // empty: it is read elsewhere
  std::string_view head_dim = "head_dim";
  double norm_eps = 0;  // 0: config.json must say it
};

void read_remote_sizes(const JsonFields& c, const RemoteSizes& sizes, Config& config);

void read_plm(const JsonFields& c, Config& config);
void read_plamo3(const JsonFields& c, Config& config);
void read_plamo2_sizes(const JsonFields& c, Config& config);
void read_plamo2(const JsonFields& c, Config& config);
/// Llama Nemotron and DeciLM.
void read_deci_sizes(const JsonFields& c, Config& config);
void read_deci(const JsonFields& c, Config& config);
void read_talkie_sizes(const JsonFields& c, Config& config);
void read_talkie(const JsonFields& c, Config& config);

void add_plm_keys(const Config& config, Keys& keys);
void add_plamo3_keys(const Config& config, Keys& keys);
void add_plamo2_keys(const Config& config, Keys& keys);
void add_deci_keys(const Config& config, Keys& keys);
/// The factor of logits, which the folder has as a tensor.
void add_talkie_factor(const Config& config, const Shards& shards, const std::string& folder,
                       Keys& keys);

}  // namespace snapkv::huggingface
