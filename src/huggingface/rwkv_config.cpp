// SPDX-License-Identifier: MIT
#include "huggingface/rwkv_config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "huggingface/mixture_config.h"

namespace snapkv::huggingface {
namespace {

constexpr int64_t kMostRank = 1 << 16, kMostRwkvHead = 1 << 10, kMostRwkvWidth = 1 << 22;
constexpr int64_t kEndlessContext = 1 << 20;  // as llama.cpp's files have it

/// Sizes that all these classes name alike. The key of heads' size may be missing.
void read_common(const JsonFields& c, std::string_view head_key, Config& config) {
  config.n_layer = c.integer("num_hidden_layers", 1, 4096);
  config.n_embd = c.integer("hidden_size", 1, 1 << 20);
  config.n_vocab = c.integer("vocab_size", 1, INT32_MAX);
  config.n_ctx = kEndlessContext;
  if (!head_key.empty()) {
    config.rwkv.head_dim = c.integer(head_key, 1, kMostRwkvHead);
    if (config.n_embd % config.rwkv.head_dim != 0) {
      c.bad("hidden_size", "is {}, which is not a multiple of {}, {}", config.n_embd, head_key,
            config.rwkv.head_dim);
    }
    config.rwkv.n_head_kv = config.n_embd / config.rwkv.head_dim;
  }
  if (c.flag("tie_word_embeddings", false)) {
    c.bad("tie_word_embeddings", "is true, supported is false");
  }
}

/// A rank, or if config.json does not say it, the one that RWKV 7's class takes.
int64_t read_rank(const JsonFields& c, std::string_view key, double exponent, double factor,
                  int64_t n_embd) {
  if (c.has(key)) return c.integer(key, 1, kMostRank);
  const double rank = std::pow(static_cast<double>(n_embd), exponent) * factor / 32;
  return 32 * std::max<int64_t>(1, std::llrint(rank));
}

/// Fails unless all layers have such mixers.
void expect_all_layers(const JsonFields& c, const Config& config) {
  const Json* const layers = c.find("wkv_layers");
  if (layers == nullptr || *layers == "full") return;
  Json all = Json::array();
  for (int64_t il = 0; il < config.n_layer; ++il) all.push_back(il);
  if (*layers == all) return;
  c.bad("wkv_layers", "is {}, supported is \"full\"", shown(*layers));
}

}  // namespace

void read_no_layers(const JsonFields& /*c*/, Config& /*config*/) {}

void read_rwkv7(const JsonFields& c, Config& config) {
  read_common(c, "head_dim", config);
  config.norm_eps = c.positive("norm_eps", 1e-5);
  config.n_ff = c.integer("intermediate_size", 1, kMostRwkvWidth, 4 * config.n_embd);
  if (!c.has("intermediate_size")) c.expect("hidden_ratio", 4.0);
  RwkvSizes& rwkv = config.rwkv;
  rwkv.n_mix = 6;
  rwkv.decay_rank = read_rank(c, "decay_low_rank_dim", 0.5, 1.8, config.n_embd);
  rwkv.rate_rank = read_rank(c, "a_low_rank_dim", 0.5, 1.8, config.n_embd);
  rwkv.first_rank = read_rank(c, "v_low_rank_dim", 0.5, 1.3, config.n_embd);
  rwkv.gate_rank = read_rank(c, "gate_low_rank_dim", 0.8, 0.6, config.n_embd);
  if (c.has("attn")) c.bad("attn", "is {}, supported is null", shown(*c.find("attn")));
  if (const Json* const widths = c.find("value_dim")) {
    const Json all(std::vector<int64_t>(config.n_layer, config.n_embd));
    if (*widths != config.n_embd && *widths != all) {
      c.bad("value_dim", "is {}, supported is hidden_size, {}, for all layers", shown(*widths),
            config.n_embd);
    }
  }
  for (const char* key : {"norm_first", "norm_bias"}) expect_flag(c, key, true);
}

void read_rwkv6(const JsonFields& c, Config& config) {
  read_common(c, "head_size", config);
  config.norm_eps = c.positive("layer_norm_epsilon", 1e-5);
  config.n_ff = c.integer("intermediate_size", 1, kMostRwkvWidth, config.n_embd * 7 / 2 / 32 * 32);
  RwkvSizes& rwkv = config.rwkv;
  rwkv.n_mix = 5;
  const bool wide = config.n_embd == 4096;
  rwkv.mix_rank = wide ? 64 : 32;
  rwkv.decay_rank = wide ? 128 : 64;
  rwkv.rescale_every = c.integer("rescale_every", 0, 4096, 6);
  c.expect("head_size_divisor", 8.0);
  const int64_t width = c.integer("attention_hidden_size", 1, 1 << 20, config.n_embd);
  if (width != config.n_embd) {
    c.bad("attention_hidden_size", "is {}, supported is {}, as hidden_size is", width,
          config.n_embd);
  }
}

void read_arwkv7(const JsonFields& c, Config& config) {
  read_common(c, "head_size", config);
  config.norm_eps = c.positive("rms_norm_eps");
  config.n_ff = c.integer("intermediate_size", 1, kMostRwkvWidth);
  if (const int64_t version = c.integer("wkv_version", 1, 100); version != 7) {
    c.bad("wkv_version", "is {}, supported is 7", version);
  }
  expect_all_layers(c, config);
  const bool gated = c.flag("wkv_has_gate", true);
  config.rwkv.normed = c.flag("wkv_has_group_norm", true);
  config.rwkv.n_mix = gated ? 6 : 5;
  // which config.json does not say
  config.rwkv.decay_rank = config.rwkv.rate_rank = 64;
  config.rwkv.first_rank = 32;
  config.rwkv.gate_rank = gated ? 128 : 0;
  for (const char* key : {"v_first_with_embedding", "use_sliding_window"}) {
    expect_flag(c, key, false);
  }
}

void read_qrwkv6(const JsonFields& c, Config& config) {
  read_common(c, "", config);
  config.norm_eps = c.positive("rms_norm_eps");
  config.n_ff = c.integer("intermediate_size", 1, kMostRwkvWidth);
  const int64_t n_head = c.integer("num_attention_heads", 1, 1 << 14);
  RwkvSizes& rwkv = config.rwkv;
  rwkv.n_head_kv = c.integer("num_key_value_heads", 1, 1 << 14, n_head);
  if (config.n_embd % n_head != 0 || n_head % rwkv.n_head_kv != 0) {
    c.bad("num_attention_heads",
          "is {}, which must divide hidden_size, {}, and be a multiple of num_key_value_heads, {}",
          n_head, config.n_embd, rwkv.n_head_kv);
  }
  rwkv.head_dim = config.n_embd / n_head;
  rwkv.n_mix = 5;
  const bool wide = config.n_embd >= 4096;
  rwkv.mix_rank = c.integer("lora_rank_tokenshift", 1, kMostRank, wide ? 64 : 32);
  rwkv.decay_rank = c.integer("lora_rank_decay", 1, kMostRank, wide ? 128 : 64);
  for (const char* key : {"use_rope", "use_sliding_window"}) expect_flag(c, key, false);
}

void add_rwkv_keys(const Config& config, Keys& keys) {
  const std::string prefix = std::string(config.mapping->architecture) + ".";
  const RwkvSizes& rwkv = config.rwkv;
  const bool in_qwen = prefix == "arwkv7." || prefix == "rwkv6qwen2.";
  keys.u32(prefix + "wkv.head_size", rwkv.head_dim);
  keys.u32(prefix + "attention.head_count", 0);  // which llama.cpp needs
  keys.u32(prefix + "attention.head_count_kv", prefix == "rwkv6qwen2." ? rwkv.n_head_kv : 0);
  if (in_qwen) keys.u32(prefix + "token_shift_count", 1);
  if (rwkv.mix_rank > 0) {
    keys.u32(prefix + "time_mix_extra_dim", rwkv.mix_rank);
    keys.u32(prefix + "time_decay_extra_dim", rwkv.decay_rank);
    if (!in_qwen) keys.u32(prefix + "rescale_every_n_layers", rwkv.rescale_every);
    return;
  }
  keys.u32(prefix + "attention.decay_lora_rank", rwkv.decay_rank);
  keys.u32(prefix + "attention.iclr_lora_rank", rwkv.rate_rank);
  keys.u32(prefix + "attention.value_residual_mix_lora_rank", rwkv.first_rank);
  keys.u32(prefix + "attention.gate_lora_rank", rwkv.gate_rank);
}

}  // namespace snapkv::huggingface
