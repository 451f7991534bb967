// SPDX-License-Identifier: MIT
#include "huggingface/dbrx_config.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "huggingface/mixture_config.h"
#include "huggingface/rope_config.h"
#include "huggingface/window_config.h"

namespace snapkv::huggingface {
namespace {

JsonFields need_object(const JsonFields& c, const char* key) {
  const auto fields = c.object(key);
  if (!fields) c.bad(key, "is missing");
  return *fields;
}

}  // namespace

void read_dbrx_sizes(const JsonFields& c, Config& config) {
  config.n_layer = c.integer("n_layers", 1, 4096);
  config.n_embd = c.integer("d_model", 1, 1 << 20);
  config.n_head = c.integer("n_heads", 1, 1 << 14);
  config.n_head_kv = need_object(c, "attn_config").integer("kv_n_heads", 1, 1 << 14, 1);
  if (config.n_embd % config.n_head != 0 || config.n_head % config.n_head_kv != 0) {
    c.bad("n_heads", "is {}, which must divide d_model, {}, and be a multiple of kv_n_heads, {}",
          config.n_head, config.n_embd, config.n_head_kv);
  }
  config.head_dim = config.n_embd / config.n_head;
  config.n_ff = need_object(c, "ffn_config").integer("ffn_hidden_size", 1, 1 << 22);
  config.n_vocab = c.integer("vocab_size", 1, INT32_MAX);
  config.n_ctx = c.integer("max_seq_len", 1, kMaxContext);
  config.norm_eps = 1e-5;
}

void read_dbrx(const JsonFields& c, Config& config) {
  const JsonFields network = need_object(c, "ffn_config");
  config.n_expert = network.integer("moe_num_experts", 1, 1024);
  config.n_expert_used = network.integer("moe_top_k", 1, config.n_expert);
  if (const auto activation = network.object("ffn_act_fn"))
    expect_text(*activation, "name", "silu");
  // the power of the norm by which weights are divided; as published, null: they stay as they are
  const auto power = network.json().find("moe_normalize_expert_weights");
  config.normalizes_experts = power == network.json().end() || !power->is_null();
  if (config.normalizes_experts) network.expect("moe_normalize_expert_weights", 1.0);

  const JsonFields attention = need_object(c, "attn_config");
  if (attention.has("clip_qkv")) config.qkv_limit = attention.positive("clip_qkv");
  read_rope(c, config);
  const auto rope = c.object("rope_parameters");
  if (!attention.has("rope_theta")) return;
  const double theta = attention.positive("rope_theta");
  if (rope && rope->has("rope_theta") && theta != config.rope.theta) {
    attention.bad("rope_theta", "is {}, but that of rope_parameters is {}", theta,
                  config.rope.theta);
  }
  config.rope.theta = theta;
}

}  // namespace snapkv::huggingface
