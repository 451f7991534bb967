// SPDX-License-Identifier: MIT
#include "huggingface/latent_config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "huggingface/mixture_config.h"
#include "huggingface/rope_config.h"
#include "huggingface/window_config.h"

namespace snapkv::huggingface {
namespace {

constexpr int64_t kMostLatentWidth = 1 << 12, kMostLatentRank = 1 << 14;

/// What a class takes where config.json says nothing.
struct LatentDefaults {
  int64_t n_shared = 1, n_dense = 0, n_group = 1, n_group_used = 1;
  double scale = 1.0;
  bool normalizes = true;
};

LatentDefaults defaults_of(const Config& config) {
  if (config.class_name == "DeepseekV2ForCausalLM") return {.n_shared = 2, .normalizes = false};
  if (config.mapping->architecture == "glm-dsa") return {.n_dense = 3, .scale = 2.5};
  if (config.class_name == "DeepseekV3ForCausalLM" ||
      config.mapping->architecture == "deepseek32") {
    return {.n_dense = 3, .n_group = 8, .n_group_used = 4, .scale = 2.5};
  }
  if (config.class_name == "Glm4MoeLiteForCausalLM") return {.n_dense = 1, .scale = 1.8};
  return {};
}

/// Groups of experts, if a token chooses among them by their highest scores.
void read_group_maximum(const JsonFields& c, Config& config) {
  const std::string method = c.text("topk_method", "greedy");
  if (method == "greedy") return;  // which knows no groups
  if (method != "group_limited_greedy") {
    c.bad("topk_method", "is \"{}\", supported are \"greedy\" and \"group_limited_greedy\"",
          printable(method));
  }
  read_expert_groups(c, {"n_group"}, {"topk_group"}, config);
  config.n_group_best = 1;
}

/// Scores of experts, the rule by which a token chooses, and how their weights are made.
void read_rule(const JsonFields& c, const LatentDefaults& otherwise, Config& config) {
  const bool softmax =
      config.class_name == "DeepseekV2ForCausalLM" || config.mapping->architecture == "mistral4";
  config.sigmoid_scores = !softmax;
  expect_text(c, "scoring_func", softmax ? "softmax" : "sigmoid");
  if (config.class_name == "DeepseekV2ForCausalLM") {
    read_group_maximum(c, config);
  } else {
    if (!softmax) expect_text(c, "topk_method", "noaux_tc");
    read_expert_groups(c, {"n_group", otherwise.n_group}, {"topk_group", otherwise.n_group_used},
                       config);
  }
  config.normalizes_experts = c.flag("norm_topk_prob", otherwise.normalizes);
  if (config.class_name == "DeepseekV2ForCausalLM" && config.normalizes_experts) {
    c.bad("norm_topk_prob", "is true, supported is false");  // transformers takes no notice of it
  }
  config.expert_scale = c.positive("routed_scaling_factor", otherwise.scale);
}

void read_latent_experts(const JsonFields& c, Config& config) {
  const LatentDefaults otherwise = defaults_of(config);
  read_expert_sizes(c,
                    {.count = "n_routed_experts",
                     .n_shared = "n_shared_experts",
                     .n_dense = "first_k_dense_replace",
                     .shared_otherwise = otherwise.n_shared,
                     .dense_otherwise = otherwise.n_dense},
                    config);
  config.mixture.counts_shared = true;
  read_rule(c, otherwise, config);
}

/// Which layers have an indexer, as texts, or as a pattern of letters, or by numbers: the first
/// ones and then the last of every few. config.json says it of GLM alone.
std::vector<bool> read_indexed_layers(const JsonFields& c, int64_t n_layer) {
  std::vector<bool> all;
  if (const Json* types = c.find("indexer_types")) {
    if (!types->is_array() || std::ssize(*types) != n_layer) {
      c.bad("indexer_types", "is {}, expected an array of {} texts", shown(*types), n_layer);
    }
    for (const Json& type : *types) {
      if (type != "full" && type != "shared") {
        c.bad("indexer_types", "holds {}, expected \"full\" or \"shared\"", shown(type));
      }
      all.push_back(type == "full");
    }
  } else if (c.has("index_topk_pattern")) {
    const std::string pattern = c.text("index_topk_pattern", "");
    if (std::ssize(pattern) != n_layer || pattern.find_first_not_of("FS") != std::string::npos) {
      c.bad("index_topk_pattern", "is \"{}\", expected {} letters, F or S", printable(pattern),
            n_layer);
    }
    for (const char letter : pattern) all.push_back(letter == 'F');
  } else {
    const int64_t step = c.integer("index_topk_freq", 1, 4096, 1);
    const int64_t offset = c.integer("index_skip_topk_offset", 0, 4096, 2);
    for (int64_t il = 0; il < n_layer; ++il) {
      all.push_back(std::max<int64_t>(il - offset + 1, 0) % step == 0);
    }
  }
  if (!all.front()) c.bad("indexer_types", "gives the first layer no indexer, which it needs");
  return all;
}

bool has_indexers(const Config& config) {
  return config.mapping->architecture == "deepseek32" || config.mapping->architecture == "glm-dsa";
}

void read_indexers(const JsonFields& c, Config& config) {
  const bool glm = config.mapping->architecture == "glm-dsa";
  LatentSizes& latent = config.latent;
  if (latent.q_rank == 0) c.bad("q_lora_rank", "is missing, which indexers need");
  latent.n_index_head = c.integer("index_n_heads", 1, 1 << 14, glm ? 32 : 64);
  latent.index_key = c.integer("index_head_dim", 1, kMostLatentWidth, 128);
  latent.top_k = c.integer("index_topk", 1, kMaxContext, 2048);
  if (glm) latent.has_indexer = read_indexed_layers(c, config.n_layer);
}

/// A number that config.json may set to null.
double number_or_null(const JsonFields& c, const char* key, double otherwise, double null) {
  const auto at = c.json().find(key);
  return at != c.json().end() && at->is_null() ? null : c.positive(key, otherwise);
}

}  // namespace

void read_latent_sizes(const JsonFields& c, Config& config) {
  LatentSizes& latent = config.latent;
  latent.rank = c.integer("kv_lora_rank", 1, kMostLatentRank);
  latent.q_rank = c.has("q_lora_rank") ? c.integer("q_lora_rank", 1, kMostLatentRank) : 0;
  latent.n_own = c.integer("qk_nope_head_dim", 1, kMostLatentWidth);
  latent.n_shared = c.integer("qk_rope_head_dim", 1, kMostLatentWidth);
  latent.n_value = config.is_minicpm3()
                       ? c.integer("v_head_dim", 1, kMostLatentWidth,
                                   std::min(kMostLatentWidth, config.n_embd / config.n_head))
                       : c.integer("v_head_dim", 1, kMostLatentWidth);
}

/// Scores grow by (1 + 0.1 m ln(factor))^2, m being mscale_all_dim, and rotated values by the ratio
/// of this root for mscale to that for m. GGUF has m only, and the ratio is then taken to be 1; in
/// files of other architectures, only if m is 1.
void read_latent_growth(const JsonFields& rope, Config& config) {
  const double growth = rope.positive("mscale_all_dim");
  const double mscale = rope.positive("mscale");
  const double expected = config.mapping->architecture == "deepseek2" ? growth : 1.0;
  if (growth != expected) rope.bad("mscale_all_dim", "is {}, supported is {}", growth, expected);
  if (mscale != expected) {
    rope.bad("mscale", "is {}, supported is {}, as mscale_all_dim is", mscale, expected);
  }
  rope.expect("attention_factor", 1.0);
  config.rope.log_multiplier = 0.1 * growth;  // as files with latent attention have it
}

void add_latent_keys(const Config& config, Keys& keys) {
  const std::string prefix = std::string(config.mapping->architecture) + ".";
  const LatentSizes& latent = config.latent;
  keys.u32(prefix + "attention.kv_lora_rank", latent.rank);
  if (latent.q_rank > 0) keys.u32(prefix + "attention.q_lora_rank", latent.q_rank);
  keys.u32(prefix + "attention.key_length", latent.rank + latent.n_shared);
  keys.u32(prefix + "attention.value_length", latent.rank);
  keys.u32(prefix + "attention.key_length_mla", latent.n_key());
  keys.u32(prefix + "attention.value_length_mla", latent.n_value);
  keys.u32(prefix + "rope.dimension_count", latent.n_shared);
}

void read_deepseek(const JsonFields& c, Config& config) {
  read_latent_sizes(c, config);
  read_latent_experts(c, config);
  if (has_indexers(config)) read_indexers(c, config);
  for (const char* key : {"attention_bias", "mlp_bias"}) {
    if (c.flag(key, false)) c.bad(key, "is true, which is not supported");
  }
  if (!c.flag("rope_interleave", true)) {
    c.bad("rope_interleave", "is false, supported is true: neighbouring values are rotated");
  }
  // of a share of the key, or of all of the part that heads share
  const LatentSizes& latent = config.latent;
  const bool mistral = config.mapping->architecture == "mistral4";
  config.head_dim = mistral ? latent.n_key() : latent.n_shared;
  config.may_rotate_part = mistral;
  read_rope(c, config);
  if (config.n_rot != latent.n_shared) {
    c.bad("partial_rotary_factor",
          "rotates {} values of a key, expected {}, as qk_rope_head_dim is", config.n_rot,
          latent.n_shared);
  }
  if (mistral) read_query_growth(c, config);
  // GGUF's keys of heads are those of the latent row, which all heads share
  config.has_head_dim = false;
  config.n_head_kv = 1;
}

void add_deepseek_keys(const Config& config, Keys& keys) {
  const std::string prefix = std::string(config.mapping->architecture) + ".";
  add_latent_keys(config, keys);
  keys.u32(prefix + "attention.q_lora_rank", config.latent.q_rank);  // which llama.cpp needs
  keys.u32(prefix + "vocab_size", config.n_vocab);
  keys.u32(prefix + "leading_dense_block_count", config.n_dense_layers);
  const LatentSizes& latent = config.latent;
  if (has_indexers(config)) {
    keys.u32(prefix + "attention.indexer.head_count", latent.n_index_head);
    keys.u32(prefix + "attention.indexer.key_length", latent.index_key);
    keys.u32(prefix + "attention.indexer.top_k", latent.top_k);
  }
  if (!latent.has_indexer.empty()) {
    keys.i32s(prefix + "attention.indexer.types",
              {latent.has_indexer.begin(), latent.has_indexer.end()});
  }
  if (config.query_growth > 0) {
    keys.f32(prefix + "attention.temperature_scale", config.query_growth);
    keys.u32(prefix + "attention.temperature_length", config.rope.original_context);
  }
}

void read_minicpm3(const JsonFields& c, Config& config) {
  read_latent_sizes(c, config);
  for (const char* key : {"attention_bias", "mlp_bias"}) {
    if (c.flag(key, false)) c.bad(key, "is true, which is not supported");
  }
  if (config.n_head_kv != config.n_head) {
    c.bad("num_key_value_heads", "is {}, supported is {}, as num_attention_heads is",
          config.n_head_kv, config.n_head);
  }
  config.head_dim = config.latent.n_shared;  // all of the part that heads share is rotated
  config.has_head_dim = false;
  read_rope(c, config);
  const RopeConfig& rope = config.rope;
  if (rope.type == "yarn") c.bad("rope_scaling", "is YaRN, which is not supported here");
  // GGUF has no key for the original context
  if (rope.type == "longrope" &&
      (rope.original_context != config.n_ctx || rope.attention_factor != 1)) {
    c.bad("rope_scaling",
          "is LongRoPE with original_max_position_embeddings {} and attention_factor {}, supported "
          "are max_position_embeddings, {}, and 1",
          rope.original_context, rope.attention_factor, config.n_ctx);
  }
  const auto n_layer = static_cast<double>(config.n_layer);
  const auto n_embd = static_cast<double>(config.n_embd);
  MiniCpmScales& scales = config.minicpm;
  scales.embeddings = c.positive("scale_emb", 12.0);
  scales.residual = number_or_null(c, "scale_depth", 1.4, std::sqrt(n_layer)) / std::sqrt(n_layer);
  scales.logits = number_or_null(c, "dim_model_base", 256.0, n_embd) / n_embd;
}

void add_minicpm3_keys(const Config& config, Keys& keys) {
  const LatentSizes& latent = config.latent;
  keys.u32("minicpm3.attention.kv_lora_rank", latent.rank);
  if (latent.q_rank > 0) keys.u32("minicpm3.attention.q_lora_rank", latent.q_rank);
  keys.u32("minicpm3.attention.key_length", latent.n_key());
  keys.u32("minicpm3.attention.value_length", latent.n_value);
  keys.u32("minicpm3.rope.dimension_count", latent.n_shared);
  // others than those of MiniCPM3-4B, which files do not have
  const MiniCpmScales& scales = config.minicpm;
  const auto n_layer = static_cast<double>(config.n_layer);
  const double residual = 1.4 / std::sqrt(n_layer);
  const double logits = 256.0 / static_cast<double>(config.n_embd);
  if (scales.embeddings != 12.0) keys.f32("minicpm3.embedding_scale", scales.embeddings);
  if (scales.residual != residual) keys.f32("minicpm3.residual_scale", scales.residual);
  if (scales.logits != logits) keys.f32("minicpm3.logit_scale", scales.logits);
}

}  // namespace snapkv::huggingface
