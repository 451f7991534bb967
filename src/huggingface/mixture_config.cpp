// SPDX-License-Identifier: MIT
#include "huggingface/mixture_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "huggingface/rope_config.h"
#include "huggingface/window_config.h"

namespace snapkv::huggingface {
namespace {

constexpr int64_t kMostMixtureExperts = 1024, kMostSharedExperts = 1024,
                  kMostMixtureWidth = 1 << 22;
constexpr int64_t kMostDraftLayers = 64;

std::string own_key(const Config& config, const char* name) {
  return std::string(config.mapping->architecture) + "." + name;
}

/// Groups of experts, weights that add up to 1, and their factor, as DeepSeek V3 names them.
void read_sigmoid_rule(const JsonFields& c, const char* scale_key, double scale_otherwise,
                       bool normalizes_otherwise, Config& config) {
  config.sigmoid_scores = true;
  read_expert_groups(c, {"n_group"}, {"topk_group"}, config);
  config.normalizes_experts = c.flag("norm_topk_prob", normalizes_otherwise);
  config.expert_scale = c.positive(scale_key, scale_otherwise);
  const std::string score = c.text("scoring_func", "sigmoid");
  if (score != "sigmoid" && score != "noaux_tc") {  // by the name of the choice, in dots.llm1
    c.bad("scoring_func", "is \"{}\", supported are sigmoid and noaux_tc", printable(score));
  }
}

/// Fails unless what is there says that weights of experts add up to 1, which transformers does
/// whatever it says.
void expect_normalized(const JsonFields& c, Config& config) {
  for (const char* key : {"norm_topk_prob", "route_norm"}) expect_flag(c, key, true);
  config.normalizes_experts = true;
}

bool any_window(const Config& config) {
  return std::find(config.has_window.begin(), config.has_window.end(), true) !=
         config.has_window.end();
}

/// The windows that layer_types names. `otherwise`: the length, where config.json does not say.
void read_named_windows(const JsonFields& c, int64_t otherwise, Config& config) {
  const std::string types = read_layer_types(c, config);
  if (types.empty()) c.bad("layer_types", "is missing");
  config.sliding_window = c.integer("sliding_window", 1, kMaxContext, otherwise);
  for (const char type : types) config.has_window.push_back(type == 's');
  const auto length = c.json().find("sliding_window");
  const bool is_null = length != c.json().end() && length->is_null();
  if (is_null && (any_window(config) || config.mapping->architecture != "laguna")) {
    c.bad("sliding_window", "is null, expected the length of the windows");
  }
}

/// The share of a head that layers with a window rotate, which may differ from that of others.
void read_window_rotation(const JsonFields& c, double otherwise, bool may_differ, Config& config) {
  const auto rope = c.object("rope_parameters");
  const auto local = rope ? rope->object("sliding_attention") : std::nullopt;
  if (!local) {
    if (any_window(config)) c.bad("rope_parameters", "has no sliding_attention");
    return;
  }
  const double share = local->positive("partial_rotary_factor", otherwise);
  const auto n_rot = static_cast<int64_t>(share * static_cast<double>(config.head_dim));
  if (share > 1 || n_rot % 2 != 0 || n_rot < 2) {
    local->bad("partial_rotary_factor",
               "is {}, which rotates {} of {} values of a head, expected an even number", share,
               n_rot, config.head_dim);
  }
  if (n_rot != config.n_rot && !may_differ) {
    local->bad("partial_rotary_factor",
               "is {}, which rotates {} values, but other layers rotate {}", share, n_rot,
               config.n_rot);
  }
  config.mixture.n_rot_window = n_rot;
}

/// A number, or a list that has the same one for every layer.
int64_t same_in_all(const JsonFields& c, const char* key, int64_t low, int64_t high,
                    std::optional<int64_t> otherwise = {}) {
  const Json* const list = c.find(key);
  if (list == nullptr && otherwise) return *otherwise;
  if (list == nullptr || !list->is_array()) return c.integer(key, low, high);
  const Json* const first = list->empty() ? nullptr : &(*list)[0];
  const bool in_range =
      first != nullptr && first->is_number_integer() && *first >= low && *first <= high;
  if (!in_range || std::any_of(list->begin(), list->end(),
                               [first](const Json& item) { return item != *first; })) {
    c.bad(key, "is {}, expected the same number for all layers, {} to {}", shown(*list), low, high);
  }
  return first->get<int64_t>();
}

/// The number of shared experts beside their width, which files of some architectures have both.
void add_shared_count(const Config& config, Keys& keys) {
  if (config.n_ff_shared == 0) return;
  keys.u32(own_key(config, "expert_shared_count"), config.n_ff_shared / config.n_ff);
}

void expect_no_bias(const JsonFields& c) {
  for (const char* key : {"attention_bias", "mlp_bias", "use_bias"}) expect_flag(c, key, false);
}

/// Bases of the rotation by layer, of which 0 means none: one for all layers with a window, and one
/// for all others.
void read_layer_thetas(const JsonFields& c, Config& config) {
  const Json* const list = c.find("layer_rope_theta");
  if (list == nullptr) return;
  if (!list->is_array() || std::ssize(*list) != config.n_layer) {
    c.bad("layer_rope_theta", "is {}, expected an array of {} numbers", shown(*list),
          config.n_layer);
  }
  double full = 0, local = 0;
  for (int64_t il = 0; il < config.n_layer; ++il) {
    const Json& item = (*list)[il];
    const double theta = item.is_number() ? item.get<double>() : -1;
    if (theta != 0 && !(theta >= 1 && theta < 1e30)) {
      c.bad("layer_rope_theta", "holds {}, expected 0 or numbers from 1 on", shown(item));
    }
    config.mixture.is_rotated.push_back(theta > 0);
    double& of_kind = config.has_window[il] ? local : full;
    if (theta > 0 && of_kind > 0 && of_kind != theta) {
      c.bad("layer_rope_theta", "holds {} and {}, expected one for all layers of a kind", of_kind,
            theta);
    }
    of_kind = std::max(of_kind, theta);
  }
  if (full > 0) config.rope.theta = full;
  if (full == 0 && local > 0) config.rope.theta = local;
  if (local > 0 && local != config.rope.theta) config.rope_theta_local = local;
}

/// "gating": what attention gives has a gate for each head or for each value.
void read_laguna_gates(const JsonFields& c, Config& config) {
  if (c.has("gating_types")) {
    c.bad("gating_types", "is {}, supported is null: gating is that of all layers",
          shown(*c.find("gating_types")));
  }
  const Json* const gating = c.find("gating");
  const bool each_head = gating == nullptr || *gating == true || *gating == "per-head";
  if (!each_head && *gating != "per-element") {
    c.bad("gating", "is {}, supported are true, \"per-head\" and \"per-element\"", shown(*gating));
  }
  config.mixture.gates_values = !each_head;
}

/// num_attention_heads_per_layer, if it is there.
void read_head_counts(const JsonFields& c, Config& config) {
  constexpr const char* kKey = "num_attention_heads_per_layer";
  const Json* const list = c.find(kKey);
  if (list == nullptr) return;
  if (!list->is_array() || std::ssize(*list) != config.n_layer) {
    c.bad(kKey, "is {}, expected an array of {} numbers", shown(*list), config.n_layer);
  }
  for (const Json& item : *list) {
    const uint64_t n = item.is_number_unsigned() ? item.get<uint64_t>() : 0;
    if (n < 1 || n > (1 << 14) || n % static_cast<uint64_t>(config.n_head_kv) != 0) {
      c.bad(kKey, "holds {}, expected multiples of num_key_value_heads, {}", shown(item),
            config.n_head_kv);
    }
    config.mixture.n_head.push_back(static_cast<int64_t>(n));
  }
}

}  // namespace

void expect_flag(const JsonFields& c, const char* key, bool expected) {
  if (c.flag(key, expected) == expected) return;
  c.bad(key, "is {}, supported is {}", !expected, expected);
}

void expect_text(const JsonFields& c, std::string_view key, std::string_view expected) {
  const std::string value = c.text(key, expected);
  if (value == expected) return;
  c.bad(key, "is \"{}\", supported is \"{}\"", printable(value), expected);
}

int64_t count_dense_layers(const JsonFields& c, const Json& types, int64_t n_layer) {
  if (!types.is_array() || std::ssize(types) != n_layer) {
    c.bad("mlp_layer_types", "is {}, expected an array for {} layers", shown(types), n_layer);
  }
  int64_t n_dense = 0;
  for (int64_t il = 0; il < n_layer; ++il) {
    const bool dense = types[il] == "dense";
    if ((!dense && types[il] != "sparse") || (dense && n_dense < il)) {
      c.bad("mlp_layer_types", "is {}, expected first \"dense\", then \"sparse\"", shown(types));
    }
    n_dense += dense ? 1 : 0;
  }
  if (n_dense < n_layer) return n_dense;
  c.bad("mlp_layer_types", "is {}, expected experts in the last layer", shown(types));
}

void read_expert_sizes(const JsonFields& c, const ExpertFields& fields, Config& config) {
  config.n_expert = c.integer(fields.count, 1, kMostMixtureExperts);
  config.n_expert_used = c.integer(fields.used, 1, config.n_expert);
  if (!fields.width.empty()) {
    config.n_ff_dense = config.n_ff;
    config.n_ff = c.integer(fields.width, 1, kMostMixtureWidth);
  }
  if (!fields.n_shared.empty()) {
    config.n_ff_shared =
        config.n_ff * c.integer(fields.n_shared, 0, kMostSharedExperts, fields.shared_otherwise);
  }
  const Json* const types = c.find("mlp_layer_types");
  if (types != nullptr) {
    config.n_dense_layers = count_dense_layers(c, *types, config.n_layer);
  } else {
    const int64_t otherwise = std::min(fields.dense_otherwise, config.n_layer - 1);
    config.n_dense_layers = fields.n_dense.empty()
                                ? otherwise
                                : c.integer(fields.n_dense, 0, config.n_layer - 1, otherwise);
  }
  if (const int64_t step = c.integer("moe_layer_freq", 0, 4096, 1); step != 1) {
    c.bad("moe_layer_freq", "is {}, supported is 1", step);
  }
  config.mixture.n_draft_layers = c.integer("num_nextn_predict_layers", 0, kMostDraftLayers, 0);
}

void read_expert_groups(const JsonFields& c, CountField groups, CountField used, Config& config) {
  config.n_group = c.integer(groups.name, 1, config.n_expert, groups.otherwise);
  config.n_group_used = c.integer(used.name, 1, config.n_group, used.otherwise);
  const int64_t n_expert = config.n_expert;
  if (n_expert % config.n_group != 0) {
    c.bad(groups.name, "is {}, which does not divide the number of experts, {}", config.n_group,
          n_expert);
  }
  if (const int64_t n = n_expert / config.n_group * config.n_group_used; n < config.n_expert_used) {
    c.bad(used.name, "is {}, which leaves {} of the experts, of which a token uses {}",
          config.n_group_used, n, config.n_expert_used);
  }
}

int64_t mixture_size(const Config& config, Size which, int64_t il) {
  const MixtureConfig& m = config.mixture;
  Config layer;  // the sizes that depend on heads
  layer.head_dim = config.head_dim;
  layer.mixture.value_dim = m.value_dim;
  layer.mixture.gates_values = m.gates_values;
  layer.n_head = m.n_head.empty() ? config.n_head : m.n_head[il];
  layer.n_head_kv = m.n_head_kv.empty() ? config.n_head_kv : m.n_head_kv[il];
  switch (which) {
    case Size::head:
    case Size::q:
    case Size::kv:
    case Size::qkv:
    case Size::values:
    case Size::attended:
    case Size::out_gates:
      return layer.size(which);
    default:
      return config.size(which);
  }
}

void read_minimax(const JsonFields& c, Config& config) {
  read_expert_sizes(c, {.count = "num_local_experts", .width = ""}, config);
  config.n_ff_dense = config.n_ff;  // GGUF has both keys
  config.sigmoid_scores = true;
  expect_text(c, "scoring_func", "sigmoid");
  expect_flag(c, "use_qk_norm", true);
  expect_text(c, "qk_norm_type", "per_layer");
  expect_flag(c, "use_routing_bias", true);
  if (c.integer("shared_intermediate_size", 0, kMostMixtureWidth, 0) > 0) {
    c.bad("shared_intermediate_size", "is {}, supported is 0",
          shown(*c.find("shared_intermediate_size")));
  }
  if (c.has("attn_type_list") && same_in_all(c, "attn_type_list", 0, 1) != 1) {
    c.bad("attn_type_list", "is {}, supported is 1 for all layers",
          shown(*c.find("attn_type_list")));
  }
  config.may_rotate_part = true;
  read_rope(c, config);
  if (!c.has("rotary_dim")) return;
  const int64_t n_rot = c.integer("rotary_dim", 2, config.head_dim);
  const bool says_both = config.n_rot != config.head_dim && config.n_rot != n_rot;
  if (says_both || n_rot % 2 != 0) {
    c.bad("rotary_dim", "is {}, expected an even number, as partial_rotary_factor says", n_rot);
  }
  config.n_rot = n_rot;
}

void read_ernie_moe(const JsonFields& c, Config& config) {
  read_expert_sizes(c,
                    {.count = "moe_num_experts",
                     .used = "moe_k",
                     .n_shared = "moe_num_shared_experts",
                     .n_dense = "moe_layer_start_index",
                     .shared_otherwise = 2,
                     .dense_otherwise = 1},
                    config);
  if (const int64_t step = c.integer("moe_layer_interval", 1, 4096, 1); step != 1) {
    c.bad("moe_layer_interval", "is {}, supported is 1", step);
  }
  const int64_t last = c.integer("moe_layer_end_index", -1, 4096, -1);
  if (last != -1 && last != config.n_layer - 1) {
    c.bad("moe_layer_end_index", "is {}, supported is {}: the last layer", last,
          config.n_layer - 1);
  }
  expect_no_bias(c);
  read_rope(c, config);
}

void add_ernie_moe_keys(const Config& config, Keys& keys) {
  keys.u32(own_key(config, "interleave_moe_layer_step"), 1);
  add_shared_count(config, keys);
}

/// transformers' class takes the width of every expert, and of the shared one, from
/// intermediate_size; as published, lists for all layers say the same.
void read_hunyuan_moe(const JsonFields& c, Config& config) {
  config.n_expert = same_in_all(c, "num_experts", 1, kMostMixtureExperts);
  config.n_expert_used = same_in_all(c, "moe_topk", 1, config.n_expert);
  config.n_ff_dense = config.n_ff_shared = config.n_ff;  // GGUF has all three keys
  const int64_t width = same_in_all(c, "moe_intermediate_size", 1, kMostMixtureWidth, config.n_ff);
  if (width != config.n_ff) {
    c.bad("moe_intermediate_size", "is {}, supported is {}, as intermediate_size is", width,
          config.n_ff);
  }
  if (const int64_t n = same_in_all(c, "num_shared_expert", 0, kMostSharedExperts, 1); n != 1) {
    c.bad("num_shared_expert", "is {}, supported is 1", n);
  }
  expect_flag(c, "use_qk_norm", true);
  expect_flag(c, "use_cla", false);
  expect_no_bias(c);
  read_rope(c, config);
}

void add_hunyuan_moe_keys(const Config& config, Keys& keys) { add_shared_count(config, keys); }

void read_dots1(const JsonFields& c, Config& config) {
  read_expert_sizes(c,
                    {.count = "n_routed_experts",
                     .n_shared = "n_shared_experts",
                     .n_dense = "first_k_dense_replace"},
                    config);
  config.mixture.counts_shared = true;
  read_sigmoid_rule(c, "routed_scaling_factor", 1.0, false, config);
  const std::string types = read_layer_types(c, config);
  const bool by_number = types.empty() && c.has("sliding_window") &&
                         c.integer("max_window_layers", 0, 4096, 62) < config.n_layer;
  if (by_number || types.find('s') != std::string::npos) {
    c.bad(by_number ? "max_window_layers" : "layer_types",
          "gives sliding windows to some layers, which is not supported");
  }
  expect_no_bias(c);
  read_rope(c, config);
}

void read_exaone_moe(const JsonFields& c, Config& config) {
  read_expert_sizes(c,
                    {.n_shared = "num_shared_experts",
                     .n_dense = c.has("first_last_k_dense_replace") ? "first_last_k_dense_replace"
                                                                    : "first_k_dense_replace",
                     .shared_otherwise = 1,
                     .dense_otherwise = 1},
                    config);
  read_sigmoid_rule(c, "routed_scaling_factor", 2.5, true, config);
  read_rope(c, config);
  read_named_windows(c, 4096, config);
}

void add_exaone_moe_keys(const Config& config, Keys& keys) { add_shared_count(config, keys); }

void read_hy3(const JsonFields& c, Config& config) {
  read_expert_sizes(c,
                    {.n_shared = "num_shared_experts",
                     .n_dense = "first_k_dense_replace",
                     .shared_otherwise = 1,
                     .dense_otherwise = 1},
                    config);
  if (config.n_ff_shared == 0) c.bad("num_shared_experts", "is 0, expected at least 1");
  config.sigmoid_scores = true;
  expect_normalized(c, config);
  config.expert_scale = c.positive("router_scaling_factor", 2.826);
  expect_flag(c, "qk_norm", true);
  expect_no_bias(c);
  read_rope(c, config);
}

void read_afmoe(const JsonFields& c, Config& config) {
  read_expert_sizes(c,
                    {.n_shared = "num_shared_experts",
                     .n_dense = "num_dense_layers",
                     .shared_otherwise = 2,
                     .dense_otherwise = 1},
                    config);
  if (config.n_ff_shared == 0) c.bad("num_shared_experts", "is 0, expected at least 1");
  config.mixture.counts_shared = true;
  config.sigmoid_scores = true;
  expect_text(c, "score_func", "sigmoid");
  expect_normalized(c, config);
  config.expert_scale = c.positive("route_scale", 1.0);
  for (const char* key : {"n_group", "topk_group"}) {
    if (const int64_t n = c.integer(key, 1, kMostMixtureExperts, 1); n != 1) {
      c.bad(key, "is {}, supported is 1", n);
    }
  }
  if (!c.flag("mup_enabled", false)) {
    c.bad("mup_enabled", "is {}, supported is true: embeddings times sqrt(hidden_size)",
          c.has("mup_enabled") ? "false" : "missing");
  }
  expect_no_bias(c);
  read_rope(c, config);
  read_named_windows(c, 1024, config);
}

/// Dense layers are wider than experts, whose width is that of other classes' dense networks.
void read_cohere2moe(const JsonFields& c, Config& config) {
  read_expert_sizes(
      c, {.width = "", .n_shared = "num_shared_experts", .n_dense = "first_k_dense_replace"},
      config);
  config.n_ff_dense =
      c.integer("prefix_dense_intermediate_size", 1, kMostMixtureWidth, config.n_ff);
  const std::string score = c.text("expert_selection_fn", "softmax");
  if (score != "softmax" && score != "sigmoid") {
    c.bad("expert_selection_fn", "is \"{}\", supported are softmax and sigmoid", printable(score));
  }
  config.sigmoid_scores = score == "sigmoid";
  config.mixture.states_score = true;
  // of the chosen experts, a softmax adds up to 1
  config.normalizes_experts = !config.sigmoid_scores || c.flag("norm_topk_prob", true);
  if (config.n_ff_shared > 0) expect_text(c, "shared_expert_combination_strategy", "average");
  if (config.n_dense_layers > 0 &&
      c.integer("prefix_dense_sliding_window_pattern", 1, 4096, 1) > 1) {
    c.bad("prefix_dense_sliding_window_pattern", "is {}, supported is 1",
          shown(*c.find("prefix_dense_sliding_window_pattern")));
  }
  config.mixture.layer_norms = !c.has("rms_norm_eps");
  expect_no_bias(c);
  config.logit_scale = c.positive("logit_scale", 0.0625);
  read_rope(c, config);
  read_named_windows(c, 4096, config);
}

void add_cohere2moe_keys(const Config& config, Keys& keys) {
  keys.f32(own_key(config, "logit_scale"), config.logit_scale);
  keys.u32(own_key(config, "vocab_size"), config.n_vocab);
  keys.u32(own_key(config, "rope.dimension_count"), config.n_rot);
  add_shared_count(config, keys);
}

void read_granite_swa(const JsonFields& c, Config& config) {
  if (config.mapping->has_experts()) {
    read_expert_sizes(c, {.count = "num_local_experts", .width = ""}, config);
    config.n_ff_shared = c.integer("shared_intermediate_size", 0, kMostMixtureWidth, 0);
  }
  expect_no_bias(c);
  read_rope(c, config);
  read_named_windows(c, 128, config);
  read_layer_thetas(c, config);
}

void add_granite_swa_keys(const Config& config, Keys& keys) {
  const std::vector<bool>& rotated = config.mixture.is_rotated;
  if (!rotated.empty()) keys.flags(own_key(config, "attention.rope_pattern"), rotated);
}

void read_mimo2(const JsonFields& c, Config& config) {
  read_expert_sizes(c, {.count = "n_routed_experts", .dense_otherwise = 1}, config);
  read_sigmoid_rule(c, "routed_scaling_factor", 1.0, true, config);
  MixtureConfig& m = config.mixture;
  m.value_dim = c.integer("v_head_dim", 1, 4096, 128);
  if (c.has("attention_value_scale")) m.value_scale = c.positive("attention_value_scale");
  expect_no_bias(c);
  config.may_rotate_part = true;
  read_rope(c, config);
  read_named_windows(c, 129, config);
  read_window_rotation(c, 0.334, false, config);
  for (const bool windowed : config.has_window) {  // which have twice as many heads of keys
    m.n_head_kv.push_back(config.n_head_kv * (windowed ? 2 : 1));
  }
  if (any_window(config) && config.n_head % (2 * config.n_head_kv) != 0) {
    c.bad("num_attention_heads",
          "is {}, which is not a multiple of twice num_key_value_heads, {}: as many have layers "
          "with sliding_attention",
          config.n_head, config.n_head_kv);
  }
}

void add_mimo2_keys(const Config& config, Keys& keys) {
  if (config.mixture.value_scale > 0) {
    keys.f32(own_key(config, "attention.value_scale"), config.mixture.value_scale);
  }
}

void read_laguna(const JsonFields& c, Config& config) {
  read_expert_sizes(c, {.dense_otherwise = 1}, config);
  const Json* const dense = c.find("mlp_only_layers");  // as published, beside or instead
  Json first = Json::array();
  for (int64_t il = 0; il < config.n_dense_layers; ++il) first.push_back(il);
  if (dense != nullptr && *dense != first) {
    c.bad("mlp_only_layers", "is {}, supported is {}, the first {} layers", shown(*dense),
          shown(first), config.n_dense_layers);
  }
  config.n_ff_shared = c.integer("shared_expert_intermediate_size", 1, kMostMixtureWidth);
  config.sigmoid_scores = true;
  expect_normalized(c, config);
  config.expert_scale = c.positive("moe_routed_scaling_factor", 1.0);
  expect_flag(c, "moe_apply_router_weight_on_input", false);
  const Json* const cap = c.find("moe_router_logit_softcapping");
  if (cap != nullptr && *cap != 0) {
    c.bad("moe_router_logit_softcapping", "is {}, supported is 0", shown(*cap));
  }
  expect_no_bias(c);
  read_laguna_gates(c, config);
  read_head_counts(c, config);
  config.may_rotate_part = true;
  read_rope(c, config);
  read_named_windows(c, 512, config);
  read_window_rotation(c, 1.0, true, config);
  if (!any_window(config)) {
    config.sliding_window = 0;
    config.rope_theta_local = 0;
  }
}

void add_laguna_keys(const Config& config, Keys& keys) {
  keys.u32(own_key(config, "vocab_size"), config.n_vocab);
  if (config.sliding_window > 0) {
    keys.u32(own_key(config, "rope.dimension_count_swa"), config.mixture.n_rot_window);
  }
}

}  // namespace snapkv::huggingface
