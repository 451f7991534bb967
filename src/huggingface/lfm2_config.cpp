// SPDX-License-Identifier: MIT
#include "huggingface/lfm2_config.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace snapkv::huggingface {

void read_convolutions(const JsonFields& c, Config& config) {
  config.conv_kernel = c.integer("conv_L_cache", 2, 16, 3);
  if (c.flag("conv_bias", false)) c.bad("conv_bias", "is true, which is not supported");
  const char* const key = c.has("layer_types") ? "layer_types" : "full_attn_idxs";
  const Json* const list = c.find(key);
  if (list == nullptr) c.bad(key, "is missing");
  config.has_attention.assign(config.n_layer, false);
  const bool by_name = std::string_view(key) == "layer_types";
  if (!list->is_array() || (by_name && std::ssize(*list) != config.n_layer)) {
    c.bad(key, "is {}, expected an array for {} layers", shown(*list), config.n_layer);
  }
  for (int64_t i = 0; i < std::ssize(*list); ++i) {
    const Json& item = (*list)[i];
    if (by_name && (item == "full_attention" || item == "conv")) {
      config.has_attention[i] = item == "full_attention";
    } else if (!by_name && item.is_number_unsigned() &&
               item.get<uint64_t>() < static_cast<uint64_t>(config.n_layer)) {
      config.has_attention[item.get<uint64_t>()] = true;
    } else {
      c.bad(key, "holds {}, expected {}", shown(item),
            by_name ? "full_attention or conv" : "numbers of layers");
    }
  }
}

void read_lfm2_width(const JsonFields& c, Config& config) {
  if (c.has("block_ff_dim")) config.n_ff = c.integer("block_ff_dim", 1, 1 << 22);
  if (!c.flag("block_auto_adjust_ff_dim", true)) return;
  const int64_t multiple = c.integer("block_multiple_of", 1, 1 << 22, 256);
  config.n_ff = 2 * config.n_ff / 3;
  const double factor = c.positive("block_ffn_dim_multiplier", 1.0);
  config.n_ff = static_cast<int64_t>(factor * static_cast<double>(config.n_ff));
  config.n_ff = (config.n_ff + multiple - 1) / multiple * multiple;
}

void read_lfm2_experts(const JsonFields& c, Config& config) {
  config.n_ff_dense = config.n_ff;
  config.n_ff = c.integer("moe_intermediate_size", 1, 1 << 22);
  config.n_dense_layers = c.integer("num_dense_layers", 0, config.n_layer - 1);
  config.normalizes_experts = c.flag("norm_topk_prob", true);
  config.sigmoid_scores = true;
  config.expert_scale = c.positive("routed_scaling_factor", 1.0);
  if (!c.flag("use_expert_bias", true)) c.bad("use_expert_bias", "is false, supported is true");
}

}  // namespace snapkv::huggingface
