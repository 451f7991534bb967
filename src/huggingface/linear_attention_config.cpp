// SPDX-License-Identifier: MIT
#include "huggingface/linear_attention_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace snapkv::huggingface {
namespace {

constexpr int64_t kMostHeads = 1 << 12, kMostHeadDim = 1 << 10;  // as of GGUF's keys

/// Which layers have attention, from their names or from how often one has it.
std::vector<bool> read_layer_types(const JsonFields& c, int64_t n_layer) {
  std::vector<bool> attends;
  const Json* const list = c.find("layer_types");
  if (list == nullptr) {
    const int64_t interval = c.integer("full_attention_interval", 1, 4096, 4);
    for (int64_t il = 0; il < n_layer; ++il) attends.push_back((il + 1) % interval == 0);
    return attends;
  }
  if (!list->is_array() || std::ssize(*list) != n_layer) {
    c.bad("layer_types", "is {}, expected an array for {} layers", shown(*list), n_layer);
  }
  for (const Json& item : *list) {
    if (item != "full_attention" && item != "linear_attention") {
      c.bad("layer_types", "holds {}, expected full_attention or linear_attention", shown(item));
    }
    attends.push_back(item == "full_attention");
  }
  return attends;
}

/// How many layers have attention once, where they have it regularly; else 0.
int64_t attention_interval(const std::vector<bool>& attends) {
  const auto first = std::find(attends.begin(), attends.end(), true);
  if (first == attends.end()) return 0;
  const int64_t interval = first - attends.begin() + 1;
  for (int64_t il = 0; il < std::ssize(attends); ++il) {
    if (attends[il] != ((il + 1) % interval == 0)) return 0;
  }
  return interval;
}

}  // namespace

void read_linear_attention(const JsonFields& c, Config& config) {
  config.has_attention = read_layer_types(c, config.n_layer);
  config.conv_kernel = c.integer("linear_conv_kernel_dim", 2, 16, 4);
  LinearHeads& heads = config.linear;
  heads.n_head_k = c.integer("linear_num_key_heads", 1, kMostHeads, 16);
  heads.n_head = c.integer("linear_num_value_heads", 1, kMostHeads, 32);
  heads.d_k = c.integer("linear_key_head_dim", 1, kMostHeadDim, 128);
  heads.d_v = c.integer("linear_value_head_dim", 1, kMostHeadDim, 128);
  if (heads.n_head % heads.n_head_k != 0) {
    c.bad("linear_num_value_heads", "is {}, which is not a multiple of linear_num_key_heads, {}",
          heads.n_head, heads.n_head_k);
  }
  heads.take_turns = config.mapping->architecture != "qwen3next";
  if (!c.flag("attn_output_gate", true)) {
    c.bad("attn_output_gate", "is false, supported is true");
  }
}

void read_rope_sections(const std::optional<JsonFields>& rope, Config& config) {
  const Json* const list = rope ? rope->find("mrope_section") : nullptr;
  const int64_t n_pairs = config.n_rot / 2;
  if (list == nullptr) {  // a text turns all pairs by the same position
    const int64_t third = n_pairs / 3;
    config.rope_sections = {n_pairs - 2 * third, third, third};
    return;
  }
  int64_t total = 0;
  if (list->is_array() && list->size() == 3) {
    for (const Json& item : *list) {
      if (!item.is_number_unsigned() || item.get<uint64_t>() > uint64_t{4096}) break;
      config.rope_sections.push_back(item.get<int64_t>());
      total += config.rope_sections.back();
    }
  }
  if (config.rope_sections.size() != 3 || total != n_pairs) {
    rope->bad("mrope_section", "is {}, expected an array of 3 numbers that add up to {}",
              shown(*list), n_pairs);
  }
}

void add_linear_attention_keys(const Config& config, Keys& keys) {
  const std::string prefix = std::string(config.mapping->architecture) + ".";
  const LinearHeads& heads = config.linear;
  keys.u32(prefix + "ssm.conv_kernel", config.conv_kernel);
  keys.u32(prefix + "ssm.state_size", heads.d_k);
  keys.u32(prefix + "ssm.group_count", heads.n_head_k);
  keys.u32(prefix + "ssm.time_step_rank", heads.n_head);
  keys.u32(prefix + "ssm.inner_size", heads.n_values());
  if (const int64_t interval = attention_interval(config.has_attention); interval > 0) {
    keys.u32(prefix + "full_attention_interval", interval);
  } else {
    std::vector<bool> recurrent = config.has_attention;
    recurrent.flip();
    keys.flags(prefix + "attention.recurrent_layers", std::move(recurrent));
  }
}

}  // namespace snapkv::huggingface
