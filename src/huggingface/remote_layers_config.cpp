// SPDX-License-Identifier: MIT
#include "huggingface/remote_layers_config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "format/quantize.h"
#include "huggingface/latent_config.h"
#include "huggingface/mixture_config.h"
#include "huggingface/rope_config.h"
#include "huggingface/window_config.h"

namespace snapkv::huggingface {
namespace {

constexpr int64_t kMostRemoteFf = 1 << 22, kMostRemoteState = 1 << 16;

void expect_plain_rope(const JsonFields& c, const Config& config) {
  if (config.rope.type == "default") return;
  c.bad(c.has("rope_parameters") ? "rope_parameters" : "rope_scaling",
        "has type \"{}\", supported is default", printable(config.rope.type));
}

/// The length of PLaMo 3's windows: window_size, or in older files sliding_window, a number or a
/// list with null for layers without a window.
int64_t plamo3_window(const JsonFields& c) {
  if (c.has("window_size")) return c.integer("window_size", 1, kMaxContext);
  const Json* const list = c.find("sliding_window");
  if (list == nullptr) c.bad("window_size", "is missing");
  if (!list->is_array()) return c.integer("sliding_window", 1, kMaxContext);
  int64_t window = 0;
  for (const Json& item : *list) {
    if (item.is_null()) continue;
    const bool is_length = item.is_number_unsigned() && item > 0 && item <= kMaxContext;
    if (!is_length) c.bad("sliding_window", "holds {}, expected a length or null", shown(item));
    if (window > 0 && item != window) {
      c.bad("sliding_window", "holds {} and {}, expected one length for all layers", window,
            shown(item));
    }
    window = item.get<int64_t>();
  }
  if (window == 0) c.bad("sliding_window", "is {}, expected a length", shown(*list));
  return window;
}

/// Whether a layer has a mixer of Mamba, as PLaMo 2's class decides.
bool is_plamo2_mixer(int64_t il, int64_t n_layer, int64_t step) {
  if (n_layer <= step / 2) return il != n_layer - 1;
  return il % step != step / 2;
}

/// DeciLM's widths are multiples of 256.
int64_t deci_width(double factor, int64_t n_embd) {
  const auto width = static_cast<int64_t>(2 * factor * static_cast<double>(n_embd) / 3);
  return (width + 255) / 256 * 256;
}

/// Fails if what a block of config.json has beside the sizes is not null or false.
void expect_unset(const JsonFields& block, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const Json* const value = block.find(name);
    if (value == nullptr || *value == false) continue;
    block.bad(name, "is {}, supported are null and false", shown(*value));
  }
}

JsonFields need_part(const JsonFields& c, const Json& block, const char* name, int64_t il) {
  const auto at = block.is_object() ? block.find(name) : block.end();
  if (!block.is_object() || at == block.end() || !at->is_object()) {
    c.bad("block_configs", "is {} for layer {}, expected an object with {}", shown(block), il,
          name);
  }
  return {*at, c.file(), "block_configs." + std::to_string(il) + "." + name + "."};
}

/// block_configs: attention, a matrix in its place or none, and the width of the network or none.
void read_deci_blocks(const JsonFields& c, const Json& blocks, Config& config) {
  if (!blocks.is_array() || std::ssize(blocks) != config.n_layer) {
    c.bad("block_configs", "is {}, expected an array of {} objects", shown(blocks), config.n_layer);
  }
  MixtureConfig& m = config.mixture;
  for (int64_t il = 0; il < config.n_layer; ++il) {
    const JsonFields attention = need_part(c, blocks[il], "attention", il);
    expect_unset(attention,
                 {"num_sink_tokens", "window_length", "unshifted_sink",
                  "use_prefill_window_in_sink_attention", "sparsify", "llama4", "mamba"});
    const bool linear = attention.flag("replace_with_linear", false);
    const bool attends = attention.has("n_heads_in_group");
    if (attends && (linear || attention.flag("no_op", false))) {
      attention.bad("n_heads_in_group", "is there, although no_op or replace_with_linear is true");
    }
    const int64_t n_shared =
        attends ? attention.integer("n_heads_in_group", 1, config.n_head) : config.n_head;
    if (config.n_head % n_shared != 0) {
      attention.bad("n_heads_in_group", "is {}, which does not divide num_attention_heads, {}",
                    n_shared, config.n_head);
    }
    m.n_head.push_back(attends || linear ? config.n_head : 0);
    m.n_head_kv.push_back(attends ? config.n_head / n_shared : 0);

    const JsonFields network = need_part(c, blocks[il], "ffn", il);
    expect_unset(network, {"replace_with_linear", "sparsify", "moe", "intermediate_size"});
    const bool there = network.has("ffn_mult");
    if (there && network.flag("no_op", false)) {
      network.bad("ffn_mult", "is there, although no_op is true");
    }
    if (!there && !network.flag("no_op", false)) network.bad("ffn_mult", "is missing");
    if (!there && m.n_head.back() > 0) {
      network.bad("no_op", "is true, supported is false in a layer with attention");
    }
    const double factor = there ? network.positive("ffn_mult") : 0.0;
    const int64_t width = factor < 1024 ? deci_width(factor, config.n_embd) : kMostRemoteFf + 1;
    if (width > kMostRemoteFf) network.bad("ffn_mult", "is {}, which is too much", factor);
    config.remote.n_ff.push_back(width);
  }
  const auto& kv = m.n_head_kv;
  if (std::all_of(kv.begin(), kv.end(), [](int64_t n) { return n == 0; })) {
    c.bad("block_configs", "has no layer with attention");
  }
}

/// num_key_value_heads_per_layer, of DeciLM.
void read_deci_heads(const JsonFields& c, Config& config) {
  constexpr const char* kKey = "num_key_value_heads_per_layer";
  const Json* const list = c.find(kKey);
  if (list == nullptr) c.bad("block_configs", "is missing, and {} too", kKey);
  if (!list->is_array() || std::ssize(*list) != config.n_layer) {
    c.bad(kKey, "is {}, expected an array of {} numbers", shown(*list), config.n_layer);
  }
  for (const Json& item : *list) {
    const bool divides = item.is_number_unsigned() && item > 0 && item <= config.n_head &&
                         config.n_head % item.get<int64_t>() == 0;
    if (!divides) {
      c.bad(kKey, "holds {}, expected divisors of num_attention_heads, {}", shown(item),
            config.n_head);
    }
    config.mixture.n_head_kv.push_back(item.get<int64_t>());
  }
}

}  // namespace

void read_remote_sizes(const JsonFields& c, const RemoteSizes& sizes, Config& config) {
  config.n_layer = c.integer("num_hidden_layers", 1, 4096);
  config.n_embd = c.integer("hidden_size", 1, 1 << 20);
  if (!sizes.width.empty()) config.n_ff = c.integer(sizes.width, 1, kMostRemoteFf);
  config.n_head = c.integer("num_attention_heads", 1, 1 << 14);
  config.n_head_kv = c.integer("num_key_value_heads", 1, 1 << 14, config.n_head);
  if (config.n_head % config.n_head_kv != 0) {
    c.bad("num_attention_heads", "is {}, which is not a multiple of num_key_value_heads, {}",
          config.n_head, config.n_head_kv);
  }
  config.has_head_dim = c.has(sizes.head_dim);
  if (!config.has_head_dim && config.n_embd % config.n_head != 0) {
    c.bad("hidden_size",
          "is {}, which is not a multiple of num_attention_heads, {}, and {} is missing",
          config.n_embd, config.n_head, sizes.head_dim);
  }
  config.head_dim =
      config.has_head_dim ? c.integer(sizes.head_dim, 2, 4096) : config.n_embd / config.n_head;
  config.n_vocab = c.integer("vocab_size", 1, INT32_MAX);
  config.n_ctx = c.integer("max_position_embeddings", 1, kMaxContext);
  config.norm_eps =
      sizes.norm_eps > 0 ? c.positive("rms_norm_eps", sizes.norm_eps) : c.positive("rms_norm_eps");
}

void read_plm(const JsonFields& c, Config& config) {
  read_latent_sizes(c, config);
  if (config.latent.q_rank > 0) {
    c.bad("q_lora_rank", "is {}, supported is null", config.latent.q_rank);
  }
  if (config.n_head_kv != config.n_head) {
    c.bad("num_key_value_heads", "is {}, supported is {}, as num_attention_heads is",
          config.n_head_kv, config.n_head);
  }
  for (const char* key : {"attention_bias", "mlp_bias"}) expect_flag(c, key, false);
  if (!c.flag("tie_word_embeddings", true)) {
    c.bad("tie_word_embeddings", "is false, supported is true");
  }
  config.head_dim = config.latent.n_shared;  // all of the part that heads share is rotated
  config.has_head_dim = false;
  read_rope(c, config);
  expect_plain_rope(c, config);
}

void add_plm_keys(const Config& config, Keys& keys) {
  const LatentSizes& latent = config.latent;
  keys.u32("plm.vocab_size", config.n_vocab);
  keys.u32("plm.attention.kv_lora_rank", latent.rank);
  keys.u32("plm.attention.key_length", latent.n_key());
  keys.u32("plm.attention.value_length", latent.n_value);
  keys.u32("plm.rope.dimension_count", latent.n_shared);
}

void read_plamo3(const JsonFields& c, Config& config) {
  for (const char* key : {"attention_bias", "scale_embedding"}) expect_flag(c, key, false);
  if (!config.has_head_dim) c.bad("head_dim", "is missing");
  config.rope.theta = c.positive(c.has("rope_theta") ? "rope_theta" : "rope_global_theta");
  config.n_rot = config.head_dim;
  config.rope_theta_local = c.positive("rope_local_theta", 1e4);
  config.rope.factor = c.positive("rope_scaling_factor", 1.0);
  if (config.rope.factor != 1) {
    config.rope.type = "yarn";
    config.rope.original_context = c.integer("initial_context_length", 1, kMaxContext);
    config.rope.truncate = false;
  }
  config.sliding_window = plamo3_window(c);
  config.remote.window_step = c.integer("sliding_window_pattern", 1, 4096);
  const std::string types = read_layer_types(c, config);
  for (int64_t il = 0; il < std::ssize(types); ++il) {
    const bool full = (il + 1) % config.remote.window_step == 0;
    if ((types[il] == 'f') == full) continue;
    c.bad("layer_types", "has {} for layer {}, but sliding_window_pattern is {}",
          full ? "sliding_attention" : "full_attention", il, config.remote.window_step);
  }
}

void add_plamo3_keys(const Config& config, Keys& keys) {
  keys.u32("plamo3.vocab_size", config.n_vocab);
  keys.u32("plamo3.attention.sliding_window_pattern", config.remote.window_step);
}

void read_plamo2_sizes(const JsonFields& c, Config& config) {
  read_remote_sizes(c, {.head_dim = "hidden_size_per_head", .norm_eps = 1e-6}, config);
  if (!config.has_head_dim) c.bad("hidden_size_per_head", "is missing");
}

void read_plamo2(const JsonFields& c, Config& config) {
  if (!c.flag("mamba_enabled", true)) c.bad("mamba_enabled", "is false, supported is true");
  const int64_t step = c.integer("mamba_step", 2, 4096, 2);
  for (int64_t il = 0; il < config.n_layer; ++il) {
    config.mixture.n_head_kv.push_back(
        is_plamo2_mixer(il, config.n_layer, step) ? 0 : config.n_head_kv);
  }
  MambaSizes& mamba = config.mamba;
  config.remote.n_mamba_head = c.integer("mamba_num_heads", 1, kMostRemoteState, 64);
  mamba.n_channel = config.remote.n_mamba_head * config.head_dim;
  mamba.d_state = c.integer("mamba_d_state", 1, kMostRemoteState, 64);
  mamba.step_rank = std::max<int64_t>(64, config.n_embd / 16);
  config.conv_kernel = c.integer("mamba_d_conv", 2, 64, 4);
  // GGUF has no windows, which don't matter in contexts that are not longer
  if (c.has("attention_window_size") && !c.has("full_attention_idx")) {
    config.n_ctx = std::min(config.n_ctx, c.integer("attention_window_size", 1, kMaxContext));
  }
  if (c.has("full_attention_idx")) {
    c.bad("full_attention_idx", "is {}, supported is null", shown(*c.find("full_attention_idx")));
  }
  for (const char* key : {"attention_bias", "use_predefined_initial_state", "sparse_mlp"}) {
    expect_flag(c, key, false);
  }
  read_rope(c, config);
  expect_plain_rope(c, config);
}

void add_plamo2_keys(const Config& config, Keys& keys) {
  keys.u32("plamo2.vocab_size", config.n_vocab);
  // llama.cpp takes it from the first layer's heads, which has none
  keys.u32("plamo2.rope.dimension_count", config.n_rot);
  keys.u32("plamo2.ssm.state_size", config.mamba.d_state);
  keys.u32("plamo2.ssm.conv_kernel", config.conv_kernel);
  keys.u32("plamo2.ssm.time_step_rank", config.remote.n_mamba_head);
  keys.u32("plamo2.ssm.inner_size", config.mamba.n_channel);
  keys.u32("plamo2.ssm.group_count", 0);
}

void read_deci_sizes(const JsonFields& c, Config& config) {
  const bool blocks = c.has("block_configs");
  read_remote_sizes(c, {.width = blocks ? "" : "intermediate_size"}, config);
  if (blocks) config.has_head_dim = true;
}

void read_deci(const JsonFields& c, Config& config) {
  for (const char* key : {"attention_bias", "mlp_bias"}) expect_flag(c, key, false);
  expect_text(c, "position_embedding_type", "rope");
  if (const Json* const blocks = c.find("block_configs")) {
    read_deci_blocks(c, *blocks, config);
  } else {
    read_deci_heads(c, config);
  }
  read_rope(c, config);
}

void add_deci_keys(const Config& config, Keys& keys) {
  keys.u32("deci.vocab_size", config.n_vocab);
  keys.u32("deci.rope.dimension_count", config.n_rot);
  if (!config.remote.n_ff.empty()) keys.i32s("deci.feed_forward_length", config.remote.n_ff);
}

void read_talkie_sizes(const JsonFields& c, Config& config) {
  read_remote_sizes(c, {.norm_eps = 1e-5}, config);
  config.norm_eps = std::numeric_limits<float>::epsilon();  // whatever config.json says
  if (!config.has_head_dim) c.bad("head_dim", "is missing");
  if (config.n_head_kv == config.n_head) return;
  c.bad("num_key_value_heads", "is {}, supported is {}, as num_attention_heads is",
        config.n_head_kv, config.n_head);
}

void read_talkie(const JsonFields& c, Config& config) {
  if (c.flag("tie_word_embeddings", false)) {
    c.bad("tie_word_embeddings", "is true, supported is false");
  }
  read_rope(c, config);
  expect_plain_rope(c, config);
}

void add_talkie_factor(const Config& config, const Shards& shards, const std::string& folder,
                       Keys& keys) {
  constexpr const char* kName = "lm_head_gain.w_g";
  const auto at = std::find_if(shards.tensors.begin(), shards.tensors.end(),
                               [](const ShardTensor& t) { return t.entry.name == kName; });
  if (at == shards.tensors.end()) {
    fail(ErrorCode::kBadModel, "'{}': tensor '{}' is missing, which {} needs", folder, kName,
         config.class_name);
  }
  const std::vector<int64_t>& shape = at->entry.shape;
  const bool single = shape.empty() || (shape.size() == 1 && shape[0] == 1);
  float value = 0;
  if (single && at->entry.type->dtype) widen(at->data, *at->entry.type->dtype, 1, &value);
  if (!(value > 0) || !std::isfinite(value)) {
    fail(ErrorCode::kBadModel,
         "'{}': tensor '{}' must be one number greater than 0 in F32, F16 or BF16",
         shards.paths[at->file], kName);
  }
  keys.f32("talkie.logit_scale", value);
}

}  // namespace snapkv::huggingface
