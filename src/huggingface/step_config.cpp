// SPDX-License-Identifier: MIT
#include "huggingface/step_config.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "huggingface/mixture_config.h"
#include "huggingface/rope_config.h"
#include "huggingface/window_config.h"

namespace snapkv::huggingface {
namespace {

/// The name that transformers gives a field, if config.json has it, or the published one.
const char* saved_or_published(const JsonFields& c, const char* saved, const char* published) {
  return c.has(saved) || !c.has(published) ? saved : published;
}

/// The entries of the layers; as published, those of layers that guess further tokens follow.
/// Empty: there is no such field.
Json read_layer_list(const JsonFields& c, const char* key, const Config& config) {
  const Json* const list = c.find(key);
  if (list == nullptr) return Json::array();
  const int64_t n = config.n_layer, n_all = n + config.mixture.n_draft_layers;
  if (!list->is_array() || (std::ssize(*list) != n && std::ssize(*list) != n_all)) {
    c.bad(key, "is {}, expected an array for {} layers", shown(*list), n);
  }
  return Json(list->begin(), list->begin() + n);
}

/// The limits of each layer's gates; 0: none. Empty: no layer has one.
std::vector<double> read_step_limits(const JsonFields& c, const char* key, const Config& config) {
  std::vector<double> limits;
  for (const Json& item : read_layer_list(c, key, config)) {
    const double limit = item.is_null() ? 0.0 : item.is_number() ? item.get<double>() : -1.0;
    if (limit != 0.0 && !(limit > 1e-3 && limit < 1e6)) {
      c.bad(key, "holds {}, expected null, or numbers from 0.001 to 1000000", shown(item));
    }
    limits.push_back(static_cast<float>(limit));
  }
  return limits;
}

void read_step_windows(const JsonFields& c, Config& config) {
  for (const Json& type : read_layer_list(c, "layer_types", config)) {
    if (type != "full_attention" && type != "sliding_attention") {
      c.bad("layer_types", "holds {}, supported are full_attention and sliding_attention",
            shown(type));
    }
    config.has_window.push_back(type == "sliding_attention");
  }
  if (config.has_window.empty()) c.bad("layer_types", "is missing");
  const auto begin = config.has_window.begin(), end = config.has_window.end();
  if (std::find(begin, end, true) != end) {
    config.sliding_window = c.integer("sliding_window", 1, kMaxContext);
  }
}

/// Where no mlp_layer_types say which layers have experts: those of moe_layers_enum, "3,4,5".
void read_step_dense(const JsonFields& c, Config& config) {
  constexpr const char* kKey = "moe_layers_enum";
  if (c.has("mlp_layer_types")) return;
  const int64_t n = config.n_layer;
  std::string with_experts;
  for (int64_t il = n - 1; il >= 0; --il) {
    with_experts = std::to_string(il) + (with_experts.empty() ? "" : "," + with_experts);
    if (c.text(kKey, "") == with_experts) {
      config.n_dense_layers = il;
      return;
    }
  }
  c.bad(kKey, "is {}, expected the numbers of the last layers, up to {}, or mlp_layer_types",
        c.has(kKey) ? shown(*c.find(kKey)) : "missing", n - 1);
}

/// Layers with a window may have more heads of queries. per_layer_config says the same.
void read_step_heads(const JsonFields& c, Config& config) {
  constexpr const char* kKey = "num_sliding_attention_heads";
  if (!c.has("num_key_value_heads")) {
    config.n_head_kv = c.integer("num_attention_groups", 1, 1 << 14, config.n_head);
  }
  const auto other = c.object("attention_other_setting");  // of layers with a window, as published
  const int64_t n = other ? other->integer("num_attention_heads", 1, 1 << 14, config.n_head)
                          : c.integer(kKey, 1, 1 << 14, config.n_head);
  if (other) {
    other->expect("num_attention_groups", static_cast<double>(config.n_head_kv));
    other->expect("head_dim", static_cast<double>(config.head_dim));
  }
  if (n % config.n_head_kv != 0 || config.n_head % config.n_head_kv != 0) {
    c.bad(kKey, "is {}, which is not a multiple of num_key_value_heads, {}", n, config.n_head_kv);
  }
  for (const bool windowed : config.has_window) {
    config.mixture.n_head.push_back(windowed ? n : config.n_head);
  }
  const auto layers = c.object("per_layer_config");
  for (int64_t il = 0; layers && il < config.n_layer; ++il) {
    const auto layer = layers->object(std::to_string(il));
    if (!layer) continue;
    const int64_t expected = config.mixture.n_head[static_cast<size_t>(il)];
    const int64_t own = layer->integer("num_attention_heads", 1, 1 << 14, expected);
    if (own != expected) layer->bad("num_attention_heads", "is {}, expected {}", own, expected);
  }
}

/// The entry of the layers with a window, or of those without, which must be the same for all.
Json of_kind(const JsonFields& c, const char* key, bool windowed, const Config& config) {
  Json value;
  const Json list = read_layer_list(c, key, config);
  for (size_t il = 0; il < list.size(); ++il) {
    if (config.has_window[il] != windowed) continue;
    if (!value.is_null() && list[il] != value) {
      c.bad(key, "holds {} and {} for layers of one kind, expected one number for all",
            shown(value), shown(list[il]));
    }
    value = list[il];
  }
  return value;
}

/// The parameters of the rotation of both kinds of layers as transformers saves them, made of lists
/// for all layers, which published models have. Positions are scaled in layers without a window.
Json published_rotation(const JsonFields& c, const Config& config) {
  Json full = Json::object(), local = Json::object();
  if (const auto scaling = c.object("rope_scaling")) full = scaling->json();
  for (const auto& [key, name] : {std::pair{"rope_theta", "rope_theta"},
                                  std::pair{"partial_rotary_factors", "partial_rotary_factor"}}) {
    full[name] = of_kind(c, key, false, config);
    local[name] = of_kind(c, key, true, config);
  }
  return {{"full_attention", full}, {"sliding_attention", local}};
}

/// Layers without a window rotate half of what the others do, as GGUF's key means it.
void read_step_rotation(const JsonFields& c, Config& config) {
  Json parameters;
  if (const auto saved = c.object("rope_parameters")) {
    parameters = saved->json();
  } else {
    parameters = published_rotation(c, config);
  }
  const Json rope = {{"rope_parameters", parameters}};
  const JsonFields fields(rope, c.file());
  config.may_rotate_part = true;
  read_rope(fields, config);
  config.mixture.n_rot_window = 2 * config.n_rot;
  const auto both = fields.object("rope_parameters");
  const auto local = both ? both->object("sliding_attention") : std::nullopt;
  const double share = local ? local->positive("partial_rotary_factor", 1.0) : 1.0;
  const auto n = static_cast<int64_t>(share * static_cast<double>(config.head_dim));
  if (n != config.mixture.n_rot_window || n > config.head_dim) {
    c.bad("rope_parameters",
          "rotates {} values of a head in layers with a window and {} in others, supported is "
          "twice as many",
          n, config.n_rot);
  }
  if (config.rope.type != "default" && config.rope.type != "llama3") {
    c.bad("rope_parameters", "is of type \"{}\", supported are default and llama3",
          config.rope.type);
  }
}

/// What published models of this class may say otherwise, and transformers takes for granted.
void refuse_other_steps(const JsonFields& c) {
  expect_text(c, "moe_router_activation", "sigmoid");
  for (const char* key : {"use_head_wise_attn_gate", "norm_expert_weight", "use_moe_router_bias"}) {
    if (!c.flag(key, true)) c.bad(key, "is false, supported is true");
  }
  for (const char* key : {"attention_bias", "mlp_bias"}) {
    if (c.flag(key, false)) c.bad(key, "is true, which is not supported");
  }
}

}  // namespace

void read_step(const JsonFields& c, Config& config) {
  read_expert_sizes(c,
                    {.count = saved_or_published(c, "n_routed_experts", "moe_num_experts"),
                     .used = saved_or_published(c, "num_experts_per_tok", "moe_top_k")},
                    config);
  read_step_dense(c, config);
  config.n_ff_shared =
      c.integer(saved_or_published(c, "share_expert_dim", "share_expert_dims"), 1, 1 << 22);
  config.sigmoid_scores = true;
  config.expert_scale = c.positive("moe_router_scaling_factor", 1.0);
  refuse_other_steps(c);
  c.expect("query_pre_attn_scalar", static_cast<double>(config.head_dim));
  config.mixture.gate_limits = read_step_limits(c, "swiglu_limits", config);
  config.mixture.shared_gate_limits = read_step_limits(c, "swiglu_limits_shared", config);
  read_step_windows(c, config);
  read_step_heads(c, config);
  read_step_rotation(c, config);
}

void add_step_keys(const Config& config, Keys& keys) {
  const std::string prefix = std::string(config.mapping->architecture) + ".";
  const MixtureConfig& m = config.mixture;
  keys.u32(prefix + "rope.dimension_count", m.n_rot_window);
  if (!m.gate_limits.empty()) keys.f32s(prefix + "swiglu_clamp_exp", m.gate_limits);
  if (!m.shared_gate_limits.empty()) {
    keys.f32s(prefix + "swiglu_clamp_shexp", m.shared_gate_limits);
  }
}

}  // namespace snapkv::huggingface
