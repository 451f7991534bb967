// SPDX-License-Identifier: MIT
#include "huggingface/biased_config.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "format/quantize.h"
#include "huggingface/dense_config.h"
#include "huggingface/mixture_config.h"

namespace snapkv::huggingface {
namespace {

/// attn_config, whose fields all have defaults.
JsonFields mpt_attention(const JsonFields& c) {
  static const Json kNothing = Json::object();
  const auto fields = c.object("attn_config");
  return fields ? *fields : JsonFields(kNothing, c.file(), "attn_config.");
}

/// The slope of a head's position biases: those of the greatest power of 2 that is not more than
/// n_head, then every second one of twice as many.
double slope_of(int64_t head, int64_t n_head) {
  const auto n = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n_head)));
  const auto of = static_cast<double>(n);
  if (head < n) return std::exp2(-8.0 * static_cast<double>(head + 1) / of);
  return std::exp2(-4.0 * static_cast<double>(2 * (head - n) + 1) / of);
}

}  // namespace

void read_mpt_sizes(const JsonFields& c, Config& config) {
  config.n_layer = c.integer("n_layers", 1, 4096);
  config.n_embd = c.integer("d_model", 1, 1 << 20);
  config.n_ff = config.n_embd * c.integer("expansion_ratio", 1, 64, 4);
  config.n_head = c.integer("n_heads", 1, 1 << 14);
  if (config.n_embd % config.n_head != 0) {
    c.bad("d_model", "is {}, which is not a multiple of n_heads, {}", config.n_embd, config.n_head);
  }
  config.head_dim = config.n_embd / config.n_head;
  const JsonFields attention = mpt_attention(c);
  const std::string type = attention.text("attn_type", "multihead_attention");
  if (type == "multihead_attention") {
    config.n_head_kv = config.n_head;
  } else if (type == "multiquery_attention") {
    config.n_head_kv = 1;
  } else if (type == "grouped_query_attention") {
    config.n_head_kv = attention.integer("kv_n_heads", 1, config.n_head);
  } else {
    attention.bad("attn_type",
                  "is \"{}\", supported are multihead_attention, multiquery_attention, "
                  "grouped_query_attention",
                  printable(type));
  }
  if (config.n_head % config.n_head_kv != 0) {
    attention.bad("kv_n_heads", "is {}, of which n_heads, {}, is not a multiple", config.n_head_kv,
                  config.n_head);
  }
  config.n_vocab = c.integer("vocab_size", 1, INT32_MAX);
  config.n_ctx = c.integer("max_seq_len", 1, INT32_MAX);
  config.norm_eps = c.positive("layer_norm_epsilon", 1e-5);
}

void read_mpt(const JsonFields& c, Config& config) {
  const JsonFields attention = mpt_attention(c);
  if (!attention.flag("alibi", config.class_name == "MptForCausalLM")) {
    attention.bad("alibi", "is false, supported is true: position biases");
  }
  for (const char* key : {"prefix_lm", "qk_ln", "qk_gn", "rope"}) {
    if (attention.flag(key, false)) attention.bad(key, "is true, supported is false");
  }
  config.dense.bias_limit = attention.positive("alibi_bias_max", 8.0);
  if (config.class_name == "MptForCausalLM") attention.expect("alibi_bias_max", 8.0);
  if (attention.has("clip_qkv")) config.qkv_limit = attention.positive("clip_qkv");
  attention.expect("softmax_scale", 1 / std::sqrt(static_cast<double>(config.head_dim)));
  if (attention.integer("sliding_window_size", -1, INT32_MAX, -1) != -1) {
    attention.bad("sliding_window_size", "is {}, supported is -1",
                  shown(*attention.find("sliding_window_size")));
  }
  if (c.has("logit_scale")) {
    c.bad("logit_scale", "is {}, supported is null", shown(*c.find("logit_scale")));
  }
  const std::string norm = c.text("norm_type", "low_precision_layernorm");
  if (norm != "low_precision_layernorm" && norm != "layernorm") {
    c.bad("norm_type", "is \"{}\", supported are low_precision_layernorm, layernorm",
          printable(norm));
  }
  if (const auto network = c.object("ffn_config")) expect_text(*network, "ffn_type", "mptmlp");
}

void read_jais(const JsonFields& c, Config& config) {
  expect_text(c, "position_embedding_type", "alibi");
  if (c.text("activation_function", "") != "swiglu") {
    c.bad("activation_function", "is missing, supported is \"swiglu\"");
  }
  const std::string_view by_width = present_key(c, "scale_qk_dot_by_d", "mup_scale_qk_dot_by_d");
  if (!c.flag(by_width, false)) {
    c.bad(by_width, "is false, supported is true: scores are divided by the width of a head");
  }
  if (c.has("alibi_scaling")) {
    c.bad("alibi_scaling", "is {}, supported is null", shown(*c.find("alibi_scaling")));
  }
  FalconFactors& f = config.factors;
  f.embeddings = c.positive(present_key(c, "embeddings_scale", "mup_embeddings_scale"), 1.0);
  f.logits = c.has("width_scale")
                 ? c.positive("width_scale")
                 : c.positive("mup_output_alpha", 1.0) * c.positive("mup_width_scale", 1.0);
  config.dense.bias_limit = 8;
}

void add_jais_factor_keys(const Config& config, Keys& keys) {
  keys.f32("jais.embedding_scale", config.factors.embeddings);
  keys.f32("jais.logit_scale", config.factors.logits);
}

void check_jais_slopes(const Config& config, const Shards& shards) {
  for (const ShardTensor& t : shards.tensors) {
    if (!t.entry.name.ends_with("relative_pe.slopes")) continue;
    int64_t n = 1;
    for (const int64_t size : t.entry.shape) n *= size;
    const bool plain = n == config.n_head && t.entry.type->dtype.has_value();
    std::vector<float> slopes(plain ? n : 0);
    if (plain) widen(t.data, *t.entry.type->dtype, n, slopes.data());
    bool same = plain;
    for (int64_t h = 0; same && h < n; ++h) {  // BF16 has 8 bits
      const double expected = slope_of(h, n);
      same = std::abs(slopes[h] - expected) <= expected / 256;
    }
    if (same) continue;
    fail(
        ErrorCode::kBadModel,
        "'{}': tensor '{}' must have the {} slopes of position biases up to 8, in F32, F16 or BF16",
        shards.paths[t.file], printable(t.entry.name), config.n_head);
  }
}

}  // namespace snapkv::huggingface
