// SPDX-License-Identifier: MIT
#include "huggingface/remote_config.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "huggingface/dense_config.h"
#include "huggingface/mixture_config.h"

namespace snapkv::huggingface {
namespace {

/// The vocabulary of Baichuan 2; that of Baichuan 1 has 64000 tokens.
constexpr int64_t kBaichuan2Vocab = 125696;

/// Fails if heads don't have n_embd / n_head values, where config.json says how many.
void check_head_size(const JsonFields& c, std::string_view key, const Config& config) {
  const int64_t size = c.integer(key, 1, 4096, config.head_dim);
  if (size == config.head_dim) return;
  c.bad(key, "is {}, supported is {}: {} divided by the number of heads, {}", size, config.head_dim,
        config.n_embd, config.n_head);
}

/// A number of each layer.
std::vector<int64_t> read_counts(const JsonFields& c, std::string_view key, int64_t n_layer) {
  const Json* const list = c.find(key);
  if (list == nullptr) c.bad(key, "is missing");
  bool good = list->is_array() && std::ssize(*list) == n_layer;
  std::vector<int64_t> counts;
  for (int64_t il = 0; good && il < n_layer; ++il) {
    const Json& item = (*list)[il];
    good = item.is_number_unsigned() && item.get<uint64_t>() >= 1 && item.get<uint64_t>() <= 16384;
    if (good) counts.push_back(item.get<int64_t>());
  }
  if (!good) c.bad(key, "is {}, expected an array of {} numbers of heads", shown(*list), n_layer);
  return counts;
}

/// The width of each layer's network: the multiple of `divisor` that is nearest to the layer's
/// share of n_embd, but no less than nine tenths of that.
std::vector<int64_t> read_widths(const JsonFields& c, const Config& config) {
  constexpr std::string_view kKey = "ffn_multipliers";
  const int64_t divisor = c.integer("ffn_dim_divisor", 1, 1 << 20, 256);
  const Json* const list = c.find(kKey);
  if (list == nullptr) c.bad(kKey, "is missing");
  bool good = list->is_array() && std::ssize(*list) == config.n_layer;
  std::vector<int64_t> widths;
  for (int64_t il = 0; good && il < config.n_layer; ++il) {
    const double share = (*list)[il].is_number() ? (*list)[il].get<double>() : 0;
    good = share > 0 && share < 1024;
    if (!good) break;
    const double wanted = share * static_cast<double>(config.n_embd);
    const auto rounded = static_cast<int64_t>(wanted + static_cast<double>(divisor) / 2);
    int64_t width = std::max(divisor, rounded / divisor * divisor);
    if (static_cast<double>(width) < 0.9 * wanted) width += divisor;
    widths.push_back(width);
  }
  if (!good) {
    c.bad(kKey, "is {}, expected an array of {} numbers greater than 0", shown(*list),
          config.n_layer);
  }
  return widths;
}

}  // namespace

void read_baichuan(const JsonFields& /*c*/, Config& config) {
  config.dense.unit_output = config.n_vocab == kBaichuan2Vocab;
}

void read_minicpm(const JsonFields& c, Config& config) {
  MiniCpmScales& scales = config.minicpm;
  scales.embeddings = c.positive("scale_emb");
  scales.residual = c.positive("scale_depth") / std::sqrt(static_cast<double>(config.n_layer));
  scales.logits = static_cast<double>(config.n_embd) / c.positive("dim_model_base");
  if (const auto sparse = c.object("sparse_config")) {  // of longer contexts
    config.n_ctx = std::min(config.n_ctx, sparse->integer("dense_len", 1, INT32_MAX));
  }
}

void add_minicpm_keys(const Config& config, Keys& keys) {
  keys.f32("minicpm.embedding_scale", config.minicpm.embeddings);
  keys.f32("minicpm.residual_scale", config.minicpm.residual);
  keys.f32("minicpm.logit_scale", config.minicpm.logits);
}

void read_qwen1_sizes(const JsonFields& c, Config& config) {
  read_dense_sizes(c, config);
  if (config.n_ff % 2 != 0) {
    c.bad("intermediate_size", "is {}, expected an even number: gate and up together", config.n_ff);
  }
  config.n_ff /= 2;
}

void read_qwen1(const JsonFields& c, Config& config) {
  check_head_size(c, "kv_channels", config);
  const bool scales = c.flag("use_dynamic_ntk", false) || c.flag("use_logn_attn", false);
  if (scales) config.n_ctx = std::min(config.n_ctx, c.integer("seq_length", 1, INT32_MAX));
}

void add_qwen1_keys(const Config& config, Keys& keys) {
  keys.u32("qwen.feed_forward_length", 2 * config.n_ff);
}

void check_codeshell(const JsonFields& c, Config& /*config*/) {
  expect_text(c, "position_embedding_type", "rope");
}

void read_plamo_sizes(const JsonFields& c, Config& config) {
  read_dense_sizes(c, config);
  const int64_t n_shared = c.integer("n_shared_head", 1, 1 << 14, 8);
  if (config.n_head % n_shared != 0) {
    c.bad("n_shared_head", "is {}, of which num_attention_heads, {}, is not a multiple", n_shared,
          config.n_head);
  }
  config.n_head_kv = config.n_head / n_shared;  // whatever num_key_value_heads says
}

void read_openelm_sizes(const JsonFields& c, Config& config) {
  config.n_layer = c.integer("num_transformer_layers", 1, 4096);
  config.n_embd = c.integer("model_dim", 1, 1 << 20);
  config.head_dim = c.integer("head_dim", 2, 4096);
  config.has_head_dim = true;
  config.n_vocab = c.integer("vocab_size", 1, INT32_MAX);
  config.n_ctx = c.integer("max_context_length", 1, INT32_MAX);
  config.norm_eps = 1e-6;
  MixtureConfig& layers = config.mixture;
  layers.n_head = read_counts(c, "num_query_heads", config.n_layer);
  layers.n_head_kv = read_counts(c, "num_kv_heads", config.n_layer);
  for (int64_t il = 0; il < config.n_layer; ++il) {
    if (layers.n_head[il] % layers.n_head_kv[il] == 0) continue;
    c.bad("num_query_heads",
          "has {} for layer {}, which is not a multiple of its {} of num_kv_heads",
          layers.n_head[il], il, layers.n_head_kv[il]);
  }
  config.n_head = *std::max_element(layers.n_head.begin(), layers.n_head.end());
  config.n_head_kv = *std::max_element(layers.n_head_kv.begin(), layers.n_head_kv.end());
  config.dense.n_ff = read_widths(c, config);
  config.n_ff = *std::max_element(config.dense.n_ff.begin(), config.dense.n_ff.end());
}

void check_openelm(const JsonFields& c, Config& /*config*/) {
  expect_text(c, "normalization_layer_name", "rms_norm");
}

void add_openelm_keys(const Config& config, Keys& keys) {
  keys.i32s("openelm.feed_forward_length", config.dense.n_ff);
}

void read_chatglm_sizes(const JsonFields& c, Config& config) {
  read_dense_sizes(c, config);
  if (!c.flag("multi_query_attention", false)) return;
  config.n_head_kv = c.integer("multi_query_group_num", 1, config.n_head, 1);
  if (config.n_head % config.n_head_kv != 0) {
    c.bad("multi_query_group_num", "is {}, of which num_attention_heads, {}, is not a multiple",
          config.n_head_kv, config.n_head);
  }
}

void read_chatglm(const JsonFields& c, Config& config) {
  check_head_size(c, "kv_channels", config);
  config.rope.theta *= c.positive("rope_ratio", 1.0);
  for (const char* key : {"pre_seq_len", "quantization_bit"}) {
    if (const int64_t n = c.integer(key, 0, INT32_MAX, 0); n > 0) {
      c.bad(key, "is {}, which is not supported", n);
    }
  }
}

}  // namespace snapkv::huggingface
