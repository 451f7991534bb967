// SPDX-License-Identifier: MIT
#include "huggingface/mamba2_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "huggingface/jamba_config.h"
#include "huggingface/rope_config.h"

namespace snapkv::huggingface {
namespace {

constexpr int64_t kMostScanExperts = 1024;

/// Infinity, as config.json has it: JSON has no such number.
bool is_infinity(const Json& value) {
  return value.is_object() && value.size() == 1 && value.contains("__float__") &&
         value["__float__"] == "Infinity";
}

/// The letter of a layer's name; 0 if it has none.
char letter_of(const Json& name) {
  if (name == "mamba" || name == "linear_attention") return 'M';
  if (name == "attention" || name == "full_attention") return '*';
  if (name == "mlp") return '-';
  return name == "moe" ? 'E' : '\0';
}

/// One letter for each layer of a list of names.
std::string read_letters(const JsonFields& c, const char* key, const std::string& supported) {
  const Json* const list = c.find(key);
  if (list == nullptr || !list->is_array() || list->empty() || list->size() > 4096) {
    c.bad(key, "is {}, expected the names of 1 to 4096 layers",
          list == nullptr ? "missing" : shown(*list));
  }
  std::string letters;
  for (const Json& name : *list) {
    const char letter = letter_of(name);
    if (letter == '\0' || supported.find(letter) == std::string::npos) {
      c.bad(key, "holds {}, which is not supported", shown(name));
    }
    letters += letter;
  }
  return letters;
}

std::string read_pattern(const JsonFields& c) {
  constexpr const char* kPattern = "hybrid_override_pattern";
  if (!c.has(kPattern)) return read_letters(c, "layers_block_type", "M*-E");
  const std::string letters = c.text(kPattern, "");
  if (letters.empty() || letters.size() > 4096 ||
      letters.find_first_not_of("M*-E") != std::string::npos) {
    c.bad(kPattern, "is {}, expected 1 to 4096 letters out of M*-E", shown(*c.find(kPattern)));
  }
  return letters;
}

void set_attention(const std::string& letters, Config& config) {
  config.has_attention.clear();
  for (const char letter : letters) config.has_attention.push_back(letter == '*');
}

}  // namespace

void check_groups(const JsonFields& c, const char* key, const Mamba2Sizes& sizes) {
  if (sizes.n_head % sizes.n_group == 0) return;
  c.bad(key, "is {}, of which the number of heads, {}, is not a multiple", sizes.n_group,
        sizes.n_head);
}

void check_step_limit(const JsonFields& c) {
  const Json* const limit = c.find("time_step_limit");
  if (limit == nullptr) return;
  if (limit->is_array() && limit->size() == 2 && (*limit)[0] == 0 && is_infinity((*limit)[1])) {
    return;
  }
  c.bad("time_step_limit", "is {}, supported is [0, Infinity]", printable(limit->dump()));
}

bool has_layers_of(const GgufMapping& mapping, const JsonFields& c) {
  if (mapping.architecture == "granitehybrid" && mapping.read_own == nullptr) {
    return mapping.has_experts() == (c.integer("num_local_experts", 0, kMostScanExperts, 8) > 0);
  }
  if (mapping.architecture == "jamba") return has_jamba_layers_of(mapping, c);
  if (!mapping.architecture.starts_with("nemotron_h")) return true;
  return mapping.has_experts() == (read_pattern(c).find('E') != std::string::npos);
}

int64_t read_parts(const JsonFields& c, Config& config) {
  config.parts = read_pattern(c);
  if (config.mapping->has_experts() && config.parts.find('-') != std::string::npos) {
    c.bad(c.has("layers_block_type") ? "layers_block_type" : "hybrid_override_pattern",
          "has dense networks beside experts, which is not supported");
  }
  return std::ssize(config.parts);
}

namespace {

/// Sizes of mixers, as Granite 4 and Bamba name them.
void read_granite_mixer(const JsonFields& c, Config& config) {
  check_step_limit(c);
  Mamba2Sizes& sizes = config.mamba2;
  sizes.n_head = c.integer("mamba_n_heads", 1, kMostScanHeads, 128);
  sizes.n_group = c.integer("mamba_n_groups", 1, kMostScanHeads, 1);
  check_groups(c, "mamba_n_groups", sizes);
  sizes.d_state = c.integer("mamba_d_state", 1, kMostScanWidth, 256);
  const int64_t n_values = c.integer("mamba_expand", 1, 64, 2) * config.n_embd;
  if (n_values % sizes.n_head != 0) {
    c.bad("mamba_n_heads", "is {}, which does not divide mamba_expand * hidden_size, {}",
          sizes.n_head, n_values);
  }
  sizes.d_head = n_values / sizes.n_head;
  if (const Json* given = c.find("mamba_d_head");
      given != nullptr && *given != "auto" && *given != sizes.d_head) {
    c.bad("mamba_d_head", "is {}, expected {} for these sizes", shown(*given), sizes.d_head);
  }
  config.conv_kernel = c.integer("mamba_d_conv", 2, 16, 4);
}

}  // namespace

void read_granite_hybrid(const JsonFields& c, Config& config) {
  const std::string letters =
      read_letters(c, c.has("layer_types") ? "layer_types" : "layers_block_type", "M*");
  if (std::ssize(letters) != config.n_layer) {
    c.bad("num_hidden_layers", "is {}, but {} layers have names", config.n_layer, letters.size());
  }
  set_attention(letters, config);
  read_granite_mixer(c, config);
  config.is_rotated = c.text("position_embedding_type", "nope") == "rope";
  if (!config.mapping->has_experts()) {
    config.n_ff = c.integer("shared_intermediate_size", 1, 1 << 22, 1024);
  }
}

void read_bamba(const JsonFields& c, Config& config) {
  const Json* const indices = c.find("attn_layer_indices");
  if (indices == nullptr || !indices->is_array()) {
    c.bad("attn_layer_indices", "is {}, expected an array of layers",
          indices == nullptr ? "missing" : shown(*indices));
  }
  config.has_attention.assign(config.n_layer, false);
  for (const Json& item : *indices) {
    const bool is_layer = item.is_number_unsigned() && item < config.n_layer;
    if (!is_layer) {
      c.bad("attn_layer_indices", "holds {}, expected layers from 0 to {}", shown(item),
            config.n_layer - 1);
    }
    config.has_attention[item.get<size_t>()] = true;
  }
  for (const char* key : {"attention_bias", "mlp_bias", "mamba_proj_bias"}) {
    if (c.flag(key, false)) c.bad(key, "is true, which is not supported");
  }
  read_granite_mixer(c, config);
  config.may_rotate_part = true;
  read_rope(c, config);
}

void read_nemotron_h(const JsonFields& c, Config& config) {
  check_step_limit(c);
  set_attention(config.parts, config);
  Mamba2Sizes& sizes = config.mamba2;
  sizes.n_head = c.integer("mamba_num_heads", 1, kMostScanHeads, 128);
  sizes.n_group = c.integer("n_groups", 1, kMostScanHeads, 8);
  check_groups(c, "n_groups", sizes);
  sizes.d_state = c.integer("ssm_state_size", 1, kMostScanWidth, 128);
  sizes.d_head = c.integer("mamba_head_dim", 1, kMostScanWidth, 64);
  config.conv_kernel = c.integer("conv_kernel", 2, 16, 4);
  config.is_rotated = false;
  if (const std::string f = c.text("mamba_hidden_act", "silu"); f != "silu") {
    c.bad("mamba_hidden_act", "is {}, supported is silu", shown(*c.find("mamba_hidden_act")));
  }
}

void read_nemotron_experts(const JsonFields& c, Config& config) {
  config.n_expert = c.integer("n_routed_experts", 1, kMostScanExperts);
  config.n_ff_dense = config.n_ff;
  config.n_ff = c.integer("moe_intermediate_size", 1, 1 << 22);
  config.n_ff_shared = c.integer("moe_shared_expert_intermediate_size", 1, 1 << 22);
  config.n_group = c.integer("n_group", 1, config.n_expert, 1);
  config.n_group_used = c.integer("topk_group", 1, config.n_group, 1);
  config.normalizes_experts = c.flag("norm_topk_prob", true);
  config.sigmoid_scores = true;
  config.expert_scale = c.positive("routed_scaling_factor", 1.0);
  if (c.has("moe_latent_size")) config.n_latent = c.integer("moe_latent_size", 1, 1 << 20);
}

void add_mamba2_keys(const Config& config, Keys& keys) {
  const std::string prefix = std::string(config.mapping->architecture) + ".";
  const Mamba2Sizes& sizes = config.mamba2;
  keys.u32(prefix + "ssm.conv_kernel", config.conv_kernel);
  keys.u32(prefix + "ssm.state_size", sizes.d_state);
  keys.u32(prefix + "ssm.group_count", sizes.n_group);
  keys.u32(prefix + "ssm.time_step_rank", sizes.n_head);
  keys.u32(prefix + "ssm.inner_size", sizes.n_values());
  if (config.n_latent > 0) keys.u32(prefix + "moe_latent_size", config.n_latent);
  if (config.n_head > 0) keys.flag(prefix + "rope.scaling.finetuned", config.is_rotated);
  if (config.parts.empty()) return;
  keys.f32(prefix + "attention.layer_norm_epsilon", config.norm_eps);  // llama.cpp wants both
  std::vector<int64_t> widths;
  for (const char part : config.parts) {
    widths.push_back(part == '-' || part == 'E' ? config.n_ff : 0);
  }
  keys.i32s(prefix + "feed_forward_length", std::move(widths));
}

}  // namespace snapkv::huggingface
