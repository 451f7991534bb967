// SPDX-License-Identifier: MIT
#include "huggingface/bailing_hybrid_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "huggingface/latent_config.h"
#include "huggingface/mixture_config.h"
#include "huggingface/rope_config.h"

namespace snapkv::huggingface {
namespace {

/// The name that transformers gives a field, if config.json has it, or the published one.
const char* either(const JsonFields& c, const char* name, const char* published) {
  return c.has(name) ? name : published;
}

/// Which layers have attention: those of layer_types, or the last of every layer_group_size.
void read_attention_layers(const JsonFields& c, Config& config) {
  const Json* const types = c.find("layer_types");
  if (types == nullptr) {
    const int64_t size = c.integer("layer_group_size", 1, 4096);
    for (int64_t il = 0; il < config.n_layer; ++il) {
      config.has_attention.push_back((il + 1) % size == 0);
    }
  } else if (!types->is_array() || std::ssize(*types) != config.n_layer) {
    c.bad("layer_types", "is {}, expected an array for {} layers", shown(*types), config.n_layer);
  } else {
    for (const Json& type : *types) {
      if (type != "full_attention" && type != "linear_attention") {
        c.bad("layer_types", "holds {}, expected full_attention or linear_attention", shown(type));
      }
      config.has_attention.push_back(type == "full_attention");
    }
  }
  if (std::find(config.has_attention.begin(), config.has_attention.end(), true) !=
      config.has_attention.end()) {
    return;
  }
  c.bad(types != nullptr ? "layer_types" : "layer_group_size",
        "gives attention to none of {} layers, which is not supported", config.n_layer);
}

void read_floor(const JsonFields& c, Config& config) {
  if (!c.flag("kda_safe_gate", true)) {
    c.bad("kda_safe_gate", "is false, supported is true: decays with a floor");
  }
  const Json* const floor = c.find("kda_lower_bound");
  config.mixture.decay_floor = floor == nullptr     ? -5.0
                               : floor->is_number() ? floor->get<double>()
                                                    : 0.0;
  if (config.mixture.decay_floor >= -1e-3 || config.mixture.decay_floor <= -1e3) {
    c.bad("kda_lower_bound", "is {}, expected a number from -1000 to -0.001", shown(*floor));
  }
}

void read_experts_of_ling(const JsonFields& c, Config& config) {
  read_expert_sizes(c,
                    {.used = either(c, "num_experts_per_token", "num_experts_per_tok"),
                     .n_shared = "num_shared_experts",
                     .n_dense = "first_k_dense_replace",
                     .shared_otherwise = 1,
                     .dense_otherwise = 2},
                    config);
  config.mixture.counts_shared = true;
  config.sigmoid_scores = true;
  for (const char* key : {"scoring_func", "score_function"}) expect_text(c, key, "sigmoid");
  read_expert_groups(c, {either(c, "num_expert_group", "n_group"), 8}, {"topk_group", 4}, config);
  config.normalizes_experts = c.flag(either(c, "moe_renormalize", "norm_topk_prob"), true);
  config.expert_scale = c.positive("routed_scaling_factor", 2.5);
}

/// What published models of this class may have, and none in use does.
void refuse_more(const JsonFields& c) {
  for (const char* key :
       {"attention_bias", "use_bias", "use_qkv_bias", "use_mla_nope", "use_kda_lora", "use_nGPT",
        "value_norm", "up_proj_norm", "scale_router_input"}) {
    if (c.flag(key, false)) c.bad(key, "is true, supported is false");
  }
  for (const char* key : {"expert_swiglu_limit_list", "share_expert_swiglu_limit_list"}) {
    if (c.has(key)) c.bad(key, "is {}, supported is null", shown(*c.find(key)));
  }
  expect_text(c, "gated_attention_proj_granularity_type", "head_wise");
}

}  // namespace

void read_bailing_hybrid(const JsonFields& c, Config& config) {
  read_latent_sizes(c, config);
  read_attention_layers(c, config);
  const int64_t n_head = c.integer("linear_num_heads", 1, 1 << 12, config.n_head);
  if (n_head != config.n_head) {
    c.bad("linear_num_heads", "is {}, supported is {}, as num_attention_heads is", n_head,
          config.n_head);
  }
  const int64_t d = c.integer(either(c, "linear_head_dim", "head_dim"), 1, 1 << 10, 128);
  config.linear = {.n_head_k = n_head, .n_head = n_head, .d_k = d, .d_v = d};
  config.conv_kernel =
      c.integer(either(c, "linear_conv_kernel_dim", "short_conv_kernel_size"), 2, 16, 4);
  read_floor(c, config);
  read_experts_of_ling(c, config);
  refuse_more(c);
  if (!c.flag("no_kda_lora", true)) c.bad("no_kda_lora", "is false, supported is true");
  // as published, partial_rotary_factor is the shared part's share of a head
  config.head_dim = config.latent.n_shared;
  config.may_rotate_part = true;
  read_rope(c, config);
  config.n_rot = config.latent.n_shared;
  if (config.rope.type != "default") {
    c.bad("rope_scaling", "is of type \"{}\", supported is default", config.rope.type);
  }
  // GGUF's keys of heads are those of the latent row, which all heads share
  config.has_head_dim = false;
  config.n_head_kv = 1;
}

void add_bailing_hybrid_keys(const Config& config, Keys& keys) {
  const std::string prefix = std::string(config.mapping->architecture) + ".";
  keys.u32(prefix + "ssm.conv_kernel", config.conv_kernel);
  keys.u32(prefix + "kda.head_dim", config.linear.d_k);
  keys.flag(prefix + "kda.safe_gate", true);
  keys.f32(prefix + "kda.gate_lower_bound", config.mixture.decay_floor);
  add_latent_keys(config, keys);
}

}  // namespace snapkv::huggingface
