// SPDX-License-Identifier: MIT
#include "huggingface/remote_mixture_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "huggingface/mixture_config.h"
#include "huggingface/remote_layers_config.h"
#include "huggingface/rope_config.h"
#include "huggingface/window_config.h"

namespace snapkv::huggingface {
namespace {

constexpr int64_t kMostRemoteExperts = 1024, kMostRemoteWidth = 1 << 22;

/// Fails unless the weights of a token's experts are not made to add up to 1, or are.
void expect_norm_topk(const JsonFields& c, bool otherwise, bool expected, Config& config) {
  config.normalizes_experts = c.flag("norm_topk_prob", otherwise);
  if (config.normalizes_experts == expected) return;
  c.bad("norm_topk_prob", "is {}, supported is {}", config.normalizes_experts, expected);
}

/// Fails if not every layer has experts, by the fields of Qwen 3.
void expect_experts_in_all(const JsonFields& c) {
  if (const int64_t step = c.integer("decoder_sparse_step", 0, 4096, 1); step != 1) {
    c.bad("decoder_sparse_step", "is {}, supported is 1: experts in every layer", step);
  }
  const Json* const dense = c.find("mlp_only_layers");
  if (dense == nullptr || (dense->is_array() && dense->empty())) return;
  c.bad("mlp_only_layers", "is {}, supported is []: experts in every layer", shown(*dense));
}

/// A list of a 0 or 1 for each layer.
std::vector<bool> read_layout(const JsonFields& c, const char* key, int64_t n_layer,
                              bool otherwise) {
  const Json* const list = c.find(key);
  if (list == nullptr) return std::vector<bool>(n_layer, otherwise);
  if (!list->is_array() || std::ssize(*list) != n_layer) {
    c.bad(key, "is {}, expected an array of {} numbers", shown(*list), n_layer);
  }
  std::vector<bool> layout;
  for (const Json& item : *list) {
    if (item != 0 && item != 1) c.bad(key, "holds {}, expected 0 or 1", shown(item));
    layout.push_back(item == 1);
  }
  return layout;
}

void expect_no_bailing_options(const JsonFields& c) {
  for (const char* key : {"use_bias", "use_qkv_bias", "use_sliding_window", "norm_softmax"}) {
    expect_flag(c, key, false);
  }
  expect_flag(c, "use_rmsnorm", true);
}

}  // namespace

void read_bailing2(const JsonFields& c, Config& config) {
  read_expert_sizes(c,
                    {.n_shared = "num_shared_experts",
                     .n_dense = "first_k_dense_replace",
                     .shared_otherwise = 1,
                     .dense_otherwise = 1},
                    config);
  if (config.n_ff_shared == 0) c.bad("num_shared_experts", "is 0, expected at least 1");
  const int64_t n_shared =
      c.integer("moe_shared_expert_intermediate_size", 1, kMostRemoteWidth, config.n_ff_shared);
  if (n_shared != config.n_ff_shared) {
    c.bad("moe_shared_expert_intermediate_size",
          "is {}, supported is {}: moe_intermediate_size times num_shared_experts", n_shared,
          config.n_ff_shared);
  }
  // GGUF's width of shared experts is that of one
  config.mixture.counts_shared = config.n_ff_shared != config.n_ff;
  config.sigmoid_scores = true;
  expect_text(c, "score_function", "sigmoid");
  read_expert_groups(c, {"n_group", 8}, {"topk_group", 4}, config);
  expect_norm_topk(c, true, true, config);
  config.expert_scale = c.positive("routed_scaling_factor", 1.0);
  expect_no_bailing_options(c);
  expect_flag(c, "norm_head", false);
  expect_flag(c, "use_qk_norm", true);
  config.may_rotate_part = true;
  read_rope(c, config);
}

void read_bailing1(const JsonFields& c, Config& config) {
  read_expert_sizes(c, {.n_shared = "num_shared_experts", .n_dense = "first_k_dense_replace"},
                    config);
  config.mixture.counts_shared = true;
  if (config.n_dense_layers > 0) {  // which llama.cpp does not read
    c.bad("first_k_dense_replace", "is {}, supported is 0: experts in every layer",
          config.n_dense_layers);
  }
  config.normalizes_experts = c.flag("norm_topk_prob", true);
  expect_no_bailing_options(c);
  config.remote.normed_output = c.flag("norm_head", false);
  if (config.remote.normed_output && c.flag("tie_word_embeddings", false)) {
    c.bad("norm_head", "is true, beside tie_word_embeddings, which is not supported");
  }
  read_rope(c, config);
}

void add_counted_experts_keys(const Config& config, Keys& keys) {
  const std::string prefix = std::string(config.mapping->architecture) + ".";
  keys.u32(prefix + "vocab_size", config.n_vocab);
  keys.u32(prefix + "rope.dimension_count", config.n_rot);
  keys.u32(prefix + "leading_dense_block_count", config.n_dense_layers);
  keys.u32(prefix + "expert_shared_count", config.n_ff_shared / config.n_ff);
  keys.f32(prefix + "expert_weights_scale", config.expert_scale);
  if (config.sigmoid_scores) {  // groups, too
    keys.u32(prefix + "expert_group_count", config.n_group);
    keys.u32(prefix + "expert_group_used_count", config.n_group_used);
  }
}

void read_deepseek1(const JsonFields& c, Config& config) {
  read_expert_sizes(c,
                    {.count = "n_routed_experts",
                     .n_shared = "n_shared_experts",
                     .n_dense = "first_k_dense_replace"},
                    config);
  config.mixture.counts_shared = config.mixture.states_score = true;
  expect_text(c, "scoring_func", "softmax");
  expect_norm_topk(c, false, false, config);
  expect_flag(c, "attention_bias", false);
  read_rope(c, config);
}

void read_deepseek_ocr_sizes(const JsonFields& c, Config& config) {
  read_remote_sizes(c, {.norm_eps = 1e-6}, config);
}

/// The text model is DeepSeek V2 without latent attention.
void read_deepseek_ocr(const JsonFields& c, Config& config) {
  read_expert_sizes(c,
                    {.count = "n_routed_experts",
                     .n_shared = "n_shared_experts",
                     .n_dense = "first_k_dense_replace"},
                    config);
  config.mixture.counts_shared = config.mixture.states_score = true;
  if (c.flag("use_mla", true)) {
    c.bad("use_mla", "is {}, supported is false", c.has("use_mla") ? "true" : "missing");
  }
  expect_text(c, "scoring_func", "softmax");
  expect_text(c, "topk_method", "greedy");  // which knows no groups
  config.normalizes_experts = c.flag("norm_topk_prob", false);
  config.expert_scale = c.positive("routed_scaling_factor", 1.0);
  if (config.normalizes_experts && config.expert_scale != 1) {
    c.bad("routed_scaling_factor", "is {}, supported is 1 beside norm_topk_prob",
          config.expert_scale);
  }
  if (c.has("sliding_window_size")) {
    c.bad("sliding_window_size", "is {}, supported is null", shown(*c.find("sliding_window_size")));
  }
  if (config.n_head_kv != config.n_head) {
    c.bad("num_key_value_heads", "is {}, supported is {}, as num_attention_heads is",
          config.n_head_kv, config.n_head);
  }
  expect_flag(c, "attention_bias", false);
  read_rope(c, config);
}

void read_grove(const JsonFields& c, Config& config) {
  read_expert_sizes(c, {}, config);
  expect_experts_in_all(c);
  expect_norm_topk(c, true, true, config);
  // which config.json does not say
  config.remote.n_ff_adjugate = 128;
  config.remote.n_adjugate_group = 2;
  if (config.n_expert % 2 != 0) {
    c.bad("num_experts", "is {}, expected an even number: two experts share another one",
          config.n_expert);
  }
  for (const char* key : {"attention_bias", "use_sliding_window"}) expect_flag(c, key, false);
  read_rope(c, config);
}

void add_grove_keys(const Config& config, Keys& keys) {
  keys.u32("grovemoe.expert_chunk_feed_forward_length", config.remote.n_ff_adjugate);
  keys.u32("grovemoe.experts_per_group", config.remote.n_adjugate_group);
  keys.f32("grovemoe.expert_group_scale", 0.05);
}

void read_smallthinker_sizes(const JsonFields& c, Config& config) {
  read_remote_sizes(c, {.width = "moe_ffn_hidden_size"}, config);
}

void read_smallthinker(const JsonFields& c, Config& config) {
  config.n_expert = c.integer("moe_num_primary_experts", 1, kMostRemoteExperts);
  config.n_expert_used = c.integer("moe_num_active_primary_experts", 1, config.n_expert);
  config.n_ff_dense = config.n_ff;  // GGUF has both keys
  config.sigmoid_scores = !c.flag("moe_primary_router_apply_softmax", false);
  config.mixture.states_score = true;
  expect_flag(c, "moe_enable_early_router", true);
  expect_flag(c, "moe_enable_secondary_experts", false);
  read_rope(c, config);
  const int64_t n_layer = config.n_layer;
  const std::vector<bool> windows = read_layout(c, "sliding_window_layout", n_layer, false);
  const std::vector<bool> rotated = read_layout(c, "rope_layout", n_layer, true);
  const bool any = std::find(windows.begin(), windows.end(), true) != windows.end();
  // GGUF knows windows in all but every fourth layer, which are then those that are rotated
  for (int64_t il = 0; il < n_layer; ++il) {
    const bool in_pattern = il % 4 != 0;
    if (any && windows[il] != in_pattern) {
      c.bad("sliding_window_layout",
            "has {} for layer {}; supported are 0 for the first of every "
            "four layers and 1 for others, or 0 for all",
            windows[il] ? 1 : 0, il);
    }
    if (rotated[il] != (any ? in_pattern : true)) {
      c.bad("rope_layout", "has {} for layer {}, supported is {}", rotated[il] ? 1 : 0, il,
            any ? "1 where sliding_window_layout has 1" : "1 for all, as no layer has a window");
    }
  }
  if (any) config.sliding_window = c.integer("sliding_window_size", 1, kMaxContext);
}

void read_arctic(const JsonFields& c, Config& config) {
  read_expert_sizes(c, {.count = "num_local_experts", .width = ""}, config);
  if (const int64_t step = c.integer("moe_layer_frequency", 1, 4096, 2); step != 1) {
    c.bad("moe_layer_frequency", "is {}, supported is 1: experts in every layer", step);
  }
  if (!c.flag("parallel_attn_mlp_res", false)) {
    c.bad("parallel_attn_mlp_res", "is {}, supported is true",
          c.has("parallel_attn_mlp_res") ? "false" : "missing");
  }
  expect_flag(c, "use_residual", true);
  expect_flag(c, "attention_bias", false);
  if (c.has("sliding_window")) {
    c.bad("sliding_window", "is {}, supported is null", shown(*c.find("sliding_window")));
  }
  config.has_head_dim = false;
  read_rope(c, config);
}

void add_arctic_keys(const Config& config, Keys& keys) {
  keys.u32("arctic.vocab_size", config.n_vocab);
  keys.u32("arctic.rope.dimension_count", config.n_rot);
}

}  // namespace snapkv::huggingface
