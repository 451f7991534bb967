// SPDX-License-Identifier: MIT
#include "huggingface/jamba_config.h"

#include <nlohmann/json.hpp>
#include <string>

namespace snapkv::huggingface {
namespace {

constexpr int64_t kMostJambaExperts = 1024, kMostJambaLayers = 4096;

/// Which of how many neighbouring layers is of a kind.
struct JambaPlace {
  int64_t period = 1, offset = 0;
  bool holds(int64_t il) const { return il % period == offset; }
};

JambaPlace read_place(const JsonFields& c, const std::string& kind, int64_t period,
                      int64_t offset) {
  const std::string key = kind + "_layer_period";
  JambaPlace place;
  place.period = c.integer(key.c_str(), 1, kMostJambaLayers, period);
  place.offset = c.integer((kind + "_layer_offset").c_str(), 0, kMostJambaLayers, offset);
  if (place.offset >= place.period) {
    c.bad((kind + "_layer_offset").c_str(), "is {}, expected less than {}, {}", place.offset, key,
          place.period);
  }
  return place;
}

}  // namespace

bool has_jamba_layers_of(const GgufMapping& mapping, const JsonFields& c) {
  return mapping.has_experts() == (c.integer("num_experts", 1, kMostJambaExperts, 16) > 1);
}

void read_jamba(const JsonFields& c, Config& config) {
  const JambaPlace attention = read_place(c, "attn", 8, 4), experts = read_place(c, "expert", 2, 1);
  MambaSizes& sizes = config.mamba;
  config.has_attention.clear();
  for (int64_t il = 0; il < config.n_layer; ++il) {
    config.has_attention.push_back(attention.holds(il));
    sizes.has_experts.push_back(config.n_expert > 0 && experts.holds(il));
  }
  sizes.n_channel = c.integer("mamba_expand", 1, 64, 2) * config.n_embd;
  sizes.d_state = c.integer("mamba_d_state", 1, 1 << 12, 16);
  const int64_t rank = (config.n_embd + 15) / 16;
  const Json* const given = c.find("mamba_dt_rank");
  const bool is_auto = given != nullptr && *given == "auto";
  sizes.step_rank = is_auto ? rank : c.integer("mamba_dt_rank", 1, 1 << 20, rank);
  config.conv_kernel = c.integer("mamba_d_conv", 2, 16, 4);
  config.normalizes_experts = false;
  config.is_rotated = false;
}

void add_jamba_keys(const Config& config, Keys& keys) {
  const std::string prefix = std::string(config.mapping->architecture) + ".";
  keys.u32(prefix + "ssm.conv_kernel", config.conv_kernel);
  keys.u32(prefix + "ssm.inner_size", config.mamba.n_channel);
  keys.u32(prefix + "ssm.state_size", config.mamba.d_state);
  keys.u32(prefix + "ssm.time_step_rank", config.mamba.step_rank);
}

}  // namespace snapkv::huggingface
