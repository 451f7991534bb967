// SPDX-License-Identifier: MIT
#include "huggingface/mamba_config.h"

#include <nlohmann/json.hpp>
#include <string>

#include "huggingface/mamba2_config.h"

namespace snapkv::huggingface {
namespace {

constexpr int64_t kMostMambaState = 1 << 12, kMostMambaWidth = 1 << 20, kMostExpansion = 64;
/// The context of a model that has none, as files of llama.cpp have it.
constexpr int64_t kNoContext = 1 << 20;

/// What no tensor of GGUF stands for.
void refuse_mamba_options(const JsonFields& c) {
  if (c.flag("use_bias", false)) c.bad("use_bias", "is true, which is not supported");
  if (!c.flag("use_conv_bias", true)) c.bad("use_conv_bias", "is false, supported is true");
}

/// The rank of steps, which may follow from the width.
int64_t read_step_rank(const JsonFields& c, const Config& config) {
  const int64_t rank = (config.n_embd + 15) / 16;
  const Json* const given = c.find("time_step_rank");
  return given != nullptr && *given == "auto"
             ? rank
             : c.integer("time_step_rank", 1, kMostMambaWidth, rank);
}

}  // namespace

void read_mamba_sizes(const JsonFields& c, Config& config) {
  config.n_layer = c.integer("num_hidden_layers", 1, 4096);
  config.n_embd = c.integer("hidden_size", 1, 1 << 20);
  config.n_vocab = c.integer("vocab_size", 1, INT32_MAX);
  config.n_ctx = kNoContext;
  config.norm_eps = c.positive("layer_norm_epsilon", 1e-5);
  config.conv_kernel = c.integer("conv_kernel", 2, 16, 4);
  config.is_rotated = false;
}

void read_mamba(const JsonFields& c, Config& config) {
  refuse_mamba_options(c);
  MambaSizes& sizes = config.mamba;
  sizes.n_channel = c.has("intermediate_size")
                        ? c.integer("intermediate_size", 1, kMostMambaWidth)
                        : c.integer("expand", 1, kMostExpansion, 2) * config.n_embd;
  sizes.d_state = c.integer("state_size", 1, kMostMambaState, 16);
  sizes.step_rank = read_step_rank(c, config);
  if (config.class_name == "FalconMambaForCausalLM") {
    sizes.norm_eps = c.positive("mixer_rms_eps", 1e-6);
  }
}

void read_mamba2(const JsonFields& c, Config& config) {
  refuse_mamba_options(c);
  check_step_limit(c);
  Mamba2Sizes& sizes = config.mamba2;
  sizes.n_head = c.integer("num_heads", 1, kMostScanHeads, 128);
  sizes.n_group = c.integer("n_groups", 1, kMostScanHeads, 8);
  check_groups(c, "n_groups", sizes);
  sizes.d_state = c.integer("state_size", 1, kMostScanWidth, 128);
  sizes.d_head = c.integer("head_dim", 1, kMostScanWidth, 64);
  const int64_t n_values = c.integer("expand", 1, kMostExpansion, 2) * config.n_embd;
  if (n_values != sizes.n_values()) {
    c.bad("num_heads", "is {} and head_dim {}, whose product must be expand * hidden_size, {}",
          sizes.n_head, sizes.d_head, n_values);
  }
}

void add_mamba_keys(const Config& config, Keys& keys) {
  const std::string prefix = std::string(config.mapping->architecture) + ".";
  const MambaSizes& sizes = config.mamba;
  keys.u32(prefix + "ssm.conv_kernel", config.conv_kernel);
  keys.u32(prefix + "ssm.inner_size", sizes.n_channel);
  keys.u32(prefix + "ssm.state_size", sizes.d_state);
  keys.u32(prefix + "ssm.time_step_rank", sizes.step_rank);
  if (sizes.norm_eps == 0) return;
  keys.flag(prefix + "ssm.dt_b_c_rms", true);
  if (sizes.norm_eps != config.norm_eps) keys.f32("snapkv.ssm_norm_epsilon", sizes.norm_eps);
}

}  // namespace snapkv::huggingface
