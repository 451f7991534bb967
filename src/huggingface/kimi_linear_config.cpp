// SPDX-License-Identifier: MIT
#include "huggingface/kimi_linear_config.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "huggingface/latent_config.h"
#include "huggingface/mixture_config.h"

namespace snapkv::huggingface {
namespace {

constexpr int64_t kMostKimiHeads = 1 << 12;

/// Marks the layers that a list names, which counts from 1.
void mark_layers(const JsonFields& linear, const char* key, bool attends,
                 std::vector<std::optional<bool>>& layers) {
  const Json* const list = linear.find(key);
  if (list == nullptr || !list->is_array()) {
    linear.bad(key, "is {}, expected an array of layers",
               list == nullptr ? "missing" : shown(*list));
  }
  for (const Json& item : *list) {
    const uint64_t number = item.is_number_unsigned() ? item.get<uint64_t>() : 0;
    if (number < 1 || number > layers.size() || layers[number - 1]) {
      linear.bad(key, "holds {}, expected layers from 1 to {}, each in one list only", shown(item),
                 layers.size());
    }
    layers[number - 1] = attends;
  }
}

/// Which layers have attention: as published, two lists of them; transformers names each one's
/// kind.
std::vector<bool> read_kimi_layers(const JsonFields& c, const std::optional<JsonFields>& linear,
                                   int64_t n_layer) {
  std::vector<bool> attends;
  const Json* const types = c.find("layer_types");
  if (types != nullptr) {
    if (!types->is_array() || std::ssize(*types) != n_layer) {
      c.bad("layer_types", "is {}, expected an array for {} layers", shown(*types), n_layer);
    }
    for (const Json& type : *types) {
      if (type != "full_attention" && type != "linear_attention") {
        c.bad("layer_types", "holds {}, expected full_attention or linear_attention", shown(type));
      }
      attends.push_back(type == "full_attention");
    }
    return attends;
  }
  if (!linear) c.bad("linear_attn_config", "is missing");
  std::vector<std::optional<bool>> layers(n_layer);
  mark_layers(*linear, "full_attn_layers", true, layers);
  mark_layers(*linear, "kda_layers", false, layers);
  for (int64_t il = 0; il < n_layer; ++il) {
    if (!layers[il]) linear->bad("kda_layers", "and full_attn_layers do not name layer {}", il + 1);
    attends.push_back(*layers[il]);
  }
  return attends;
}

/// A size of linear attention: as published, or with the name that transformers gives it.
int64_t linear_size(const JsonFields& c, const std::optional<JsonFields>& linear,
                    const char* published, const char* name, int64_t low, int64_t high) {
  return linear && linear->has(published) ? linear->integer(published, low, high)
                                          : c.integer(name, low, high);
}

}  // namespace

void read_kimi_experts(const JsonFields& c, Config& config) {
  constexpr int64_t kMostKimiExperts = 1024;
  config.n_expert = c.integer("num_experts", 1, kMostKimiExperts);
  config.n_expert_used = c.integer("num_experts_per_token", 1, config.n_expert);
  config.n_ff_dense = config.n_ff;
  config.n_ff = c.integer("moe_intermediate_size", 1, 1 << 22);
  config.n_ff_shared = config.n_ff * c.integer("num_shared_experts", 1, 1024);
  const Json* const types = c.find("mlp_layer_types");
  config.n_dense_layers = types != nullptr
                              ? count_dense_layers(c, *types, config.n_layer)
                              : c.integer("first_k_dense_replace", 0, config.n_layer - 1);
  if (const int64_t step = c.integer("moe_layer_freq", 0, 4096, 1); step != 1) {
    c.bad("moe_layer_freq", "is {}, supported is 1", step);
  }
  config.n_group = c.integer("num_expert_group", 1, config.n_expert, 1);
  config.n_group_used = c.integer("topk_group", 1, config.n_group, 1);
  config.normalizes_experts = c.flag("moe_renormalize", true);
  if (!config.normalizes_experts) {
    c.bad("moe_renormalize", "is false, supported is true");  // llama.cpp knows nothing else
  }
  if (const std::string score = c.text("moe_router_activation_func", "sigmoid");
      score != "sigmoid") {
    c.bad("moe_router_activation_func", "is \"{}\", supported is \"sigmoid\"", printable(score));
  }
  config.sigmoid_scores = true;
  config.expert_scale = c.positive("routed_scaling_factor", 1.0);
}

void read_kimi_linear(const JsonFields& c, Config& config) {
  const std::optional<JsonFields> linear = c.object("linear_attn_config");
  config.has_attention = read_kimi_layers(c, linear, config.n_layer);
  const int64_t n_head = linear_size(c, linear, "num_heads", "linear_num_heads", 1, kMostKimiHeads);
  if (n_head != config.n_head) {
    c.bad("num_attention_heads", "is {}, but linear attention has {} heads, supported are as many",
          config.n_head, n_head);
  }
  const int64_t d = linear_size(c, linear, "head_dim", "linear_head_dim", 1, 1 << 10);
  config.linear = {.n_head_k = n_head, .n_head = n_head, .d_k = d, .d_v = d};
  config.conv_kernel =
      linear_size(c, linear, "short_conv_kernel_size", "linear_conv_kernel_dim", 2, 16);
  for (const char* key : {"use_full_rank_gate", "gate_lower_bound"}) {
    if (linear && linear->has(key) && *linear->find(key) != false) {
      linear->bad(key, "is {}, which is not supported", shown(*linear->find(key)));
    }
  }
  read_latent_sizes(c, config);
  if (!c.flag("mla_use_nope", true)) {
    c.bad("mla_use_nope", "is false, supported is true: attention without rotation");
  }
  for (const char* key : {"mla_use_output_gate", "attention_bias", "latent_moe_use_norm"}) {
    if (c.flag(key, false)) c.bad(key, "is true, which is not supported");
  }
  for (const char* key : {"routed_expert_hidden_size", "attn_res_block_size"}) {
    if (c.has(key)) c.bad(key, "is {}, which is not supported", shown(*c.find(key)));
  }
  // GGUF's keys of heads are those of the latent row, which all heads share
  config.has_head_dim = false;
  config.n_head_kv = 1;
}

void add_kimi_linear_keys(const Config& config, Keys& keys) {
  const std::string prefix = std::string(config.mapping->architecture) + ".";
  keys.u32(prefix + "ssm.conv_kernel", config.conv_kernel);
  keys.u32(prefix + "kda.head_dim", config.linear.d_k);
  add_latent_keys(config, keys);
}

}  // namespace snapkv::huggingface
