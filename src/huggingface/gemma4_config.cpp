// SPDX-License-Identifier: MIT
#include "huggingface/gemma4_config.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace snapkv::huggingface {
namespace {

constexpr float kNotRotated = 1e30f;  // as llama.cpp's converter writes it

/// The heads of layers without a window, as checkpoints give them, or as transformers saves them:
/// for each of these layers by its number.
void read_full_heads(const JsonFields& c, Config& config) {
  Gemma4Sizes& sizes = config.gemma4;
  sizes.head_dim_full = c.integer("global_head_dim", 8, 4096, 512);
  sizes.n_head_kv_full = config.n_head_kv;
  if (c.flag("attention_k_eq_v", false)) {
    sizes.n_head_kv_full =
        c.integer("num_global_key_value_heads", 1, config.n_head, config.n_head_kv);
  }
  const auto layers = c.object("per_layer_config");
  if (!layers) return;
  bool first = true;
  for (int64_t il = 0; il < config.n_layer; ++il) {
    const std::string key = std::to_string(il);
    const auto layer = layers->object(key);
    if (static_cast<bool>(layer) == config.has_window[il]) {
      c.bad("per_layer_config", "{} layer {}; supported are sizes of layers with full_attention",
            layer ? "has" : "lacks", il);
    }
    if (!layer) continue;
    const int64_t head_dim = layer->integer("head_dim", 8, 4096, config.head_dim);
    const int64_t n_head_kv =
        layer->integer("num_key_value_heads", 1, config.n_head, config.n_head_kv);
    const bool differs = head_dim != sizes.head_dim_full || n_head_kv != sizes.n_head_kv_full;
    if (!first && differs) {
      c.bad("per_layer_config", "has other sizes for layer {}; supported is one for all", il);
    }
    sizes.head_dim_full = head_dim;
    sizes.n_head_kv_full = n_head_kv;
    first = false;
  }
}

}  // namespace

void read_gemma4_widths(const JsonFields& c, Config& config) {
  config.n_ff_dense = config.n_ff;
  if (c.flag("enable_moe_block", false)) {
    config.n_expert = c.integer("num_experts", 1, 1024);
    config.n_expert_used = c.integer("top_k_experts", 1, config.n_expert);
    config.n_ff = c.integer("moe_intermediate_size", 1, 1 << 22);
  }
  if (c.text("use_bidirectional_attention", "") == "all") {
    c.bad("use_bidirectional_attention", "is \"all\", which is not supported");
  }
}

void read_gemma4_layers(const JsonFields& c, Config& config) {
  Gemma4Sizes& sizes = config.gemma4;
  read_full_heads(c, config);
  if (config.n_head % sizes.n_head_kv_full != 0) {
    c.bad("num_global_key_value_heads", "is {}, which does not divide num_attention_heads, {}",
          sizes.n_head_kv_full, config.n_head);
  }
  sizes.n_shared = c.integer("num_kv_shared_layers", 0, config.n_layer - 1, 0);
  sizes.wide = c.flag("use_double_wide_mlp", false);
  const char* const kInput = "hidden_size_per_layer_input";  // null: none
  sizes.n_layer_input = c.integer(kInput, 0, 1 << 16, c.json().contains(kInput) ? 0 : 256);
  if (sizes.n_layer_input > 0) {
    const int64_t n = c.integer("vocab_size_per_layer_input", 1, INT32_MAX, 262144);
    if (n != config.n_vocab) {
      c.bad("vocab_size_per_layer_input", "is {}, supported is vocab_size, {}", n, config.n_vocab);
    }
  }
  if (c.has("final_logit_softcapping")) {
    config.final_softcap = c.positive("final_logit_softcapping");
  }
}

void add_gemma4_keys(const Config& config, Keys& keys) {
  const Gemma4Sizes& sizes = config.gemma4;
  const auto key = [](const char* name) { return std::string("gemma4.") + name; };
  std::vector<int64_t> heads, widths;
  for (int64_t il = 0; il < config.n_layer; ++il) {
    heads.push_back(config.has_window[il] ? config.n_head_kv : sizes.n_head_kv_full);
    widths.push_back(config.size(Size::ff_dense, il));
  }
  keys.i32s(key("attention.head_count_kv"), std::move(heads));
  if (sizes.wide) keys.i32s(key("feed_forward_length"), std::move(widths));
  keys.u32(key("attention.key_length"), sizes.head_dim_full);
  keys.u32(key("attention.value_length"), sizes.head_dim_full);
  keys.u32(key("attention.key_length_swa"), config.head_dim);
  keys.u32(key("attention.value_length_swa"), config.head_dim);
  keys.u32(key("attention.shared_kv_layers"), sizes.n_shared);
  keys.u32(key("embedding_length_per_layer_input"), sizes.n_layer_input);
  keys.u32(key("rope.dimension_count"), sizes.head_dim_full);
  keys.u32(key("rope.dimension_count_swa"), config.head_dim);
}

std::vector<float> proportional_factors(const Config& config) {
  const int64_t n = config.gemma4.head_dim_full;
  const auto n_rotated =
      static_cast<int64_t>(config.gemma4.rotated_share * static_cast<double>(n) / 2);
  std::vector<float> factors(n / 2, kNotRotated);
  for (int64_t i = 0; i < n_rotated; ++i) factors[i] = static_cast<float>(config.rope.factor);
  return factors;
}

}  // namespace snapkv::huggingface
