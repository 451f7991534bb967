// SPDX-License-Identifier: MIT
#include "huggingface/falcon_h1_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "huggingface/mamba2_config.h"

namespace snapkv::huggingface {
namespace {

constexpr int64_t kMostFalconHeads = 1 << 12, kMostFalconWidth = 1 << 12;

template <size_t N>
void read_factors(const JsonFields& c, const char* key, std::array<double, N>& factors) {
  const Json* const list = c.find(key);
  if (list == nullptr) return;
  const auto is_factor = [](const Json& item) {
    return item.is_number() && item.get<double>() > 0 && item.get<double>() < 1e9;
  };
  if (!list->is_array() || list->size() != N ||
      !std::all_of(list->begin(), list->end(), is_factor)) {
    c.bad(key, "is {}, expected an array of {} positive numbers", shown(*list), N);
  }
  for (size_t i = 0; i < N; ++i) factors[i] = (*list)[i].get<double>();
}

void read_falcon_mixer(const JsonFields& c, Config& config) {
  check_step_limit(c);
  Mamba2Sizes& sizes = config.mamba2;
  sizes.n_head = c.integer("mamba_n_heads", 1, kMostFalconHeads, 128);
  sizes.n_group = c.integer("mamba_n_groups", 1, kMostFalconHeads, 1);
  sizes.d_state = c.integer("mamba_d_state", 1, kMostFalconWidth, 256);
  if (sizes.n_head % sizes.n_group != 0) {
    c.bad("mamba_n_groups", "is {}, of which mamba_n_heads, {}, is not a multiple", sizes.n_group,
          sizes.n_head);
  }
  const int64_t most = sizes.n_head * kMostFalconWidth;
  const int64_t n_values = c.has("mamba_d_ssm")
                               ? c.integer("mamba_d_ssm", 1, most)
                               : c.integer("mamba_expand", 1, 64, 2) * config.n_embd;
  if (n_values % sizes.n_head != 0) {
    c.bad("mamba_n_heads", "is {}, which does not divide the width of the mixer, {}", sizes.n_head,
          n_values);
  }
  sizes.d_head = n_values / sizes.n_head;
  if (const Json* given = c.find("mamba_d_head");
      given != nullptr && *given != "auto" && *given != sizes.d_head) {
    c.bad("mamba_d_head", "is {}, expected {} for these sizes", shown(*given), sizes.d_head);
  }
  config.conv_kernel = c.integer("mamba_d_conv", 2, 16, 4);
  sizes.normed = c.flag("mamba_rms_norm", false);
  if (sizes.normed && c.flag("mamba_norm_before_gate", true)) {
    c.bad("mamba_norm_before_gate", "is true with a mamba_rms_norm, supported is false");
  }
}

}  // namespace

void read_falcon_h1(const JsonFields& c, Config& config) {
  read_falcon_mixer(c, config);
  for (const char* key : {"attention_bias", "mlp_bias", "mamba_proj_bias", "projectors_bias"}) {
    if (c.flag(key, false)) c.bad(key, "is true, which is not supported");
  }
  FalconFactors& f = config.factors;
  f.embeddings = c.positive("embedding_multiplier", 1.0);
  f.logits = c.positive("lm_head_multiplier", 1.0);
  f.attention_in = c.positive("attention_in_multiplier", 1.0);
  f.attention_out = c.positive("attention_out_multiplier", 1.0);
  f.keys = c.positive("key_multiplier", 1.0);
  f.mixer_in = c.positive("ssm_in_multiplier", 1.0);
  f.mixer_out = c.positive("ssm_out_multiplier", 1.0);
  read_factors(c, "mlp_multipliers", f.network);
  read_factors(c, "ssm_multipliers", f.mixer_parts);
}

void add_factor_keys(const Config& config, Keys& keys) {
  const FalconFactors& f = config.factors;
  keys.f32("falcon-h1.embedding_scale", f.embeddings);
  keys.f32("falcon-h1.logit_scale", f.logits);
  std::vector<double> all = {f.attention_in, f.keys,     f.attention_out, f.network[0],
                             f.network[1],   f.mixer_in, f.mixer_out};
  all.insert(all.end(), f.mixer_parts.begin(), f.mixer_parts.end());
  for (double& factor : all) factor = static_cast<float>(factor);
  keys.f32s("snapkv.falcon_h1.factors", std::move(all));
}

std::vector<RowFactor> row_factors(const Config& config, Factor of) {
  const FalconFactors& f = config.factors;
  const auto all = [](double factor) {
    return factor == 1.0 ? std::vector<RowFactor>() : std::vector<RowFactor>{{INT64_MAX, factor}};
  };
  switch (of) {
    case Factor::none:
    case Factor::halved:  // which differs by layer
      return {};
    case Factor::embeddings:
      return all(f.embeddings);
    case Factor::logits:
      return all(f.logits);
    case Factor::attention_in:
      return all(f.attention_in);
    case Factor::keys:
      return all(f.attention_in * f.keys);
    case Factor::attention_out:
      return all(f.attention_out);
    case Factor::gate:
      return all(f.network[0]);
    case Factor::down:
      return all(f.network[1]);
    case Factor::mixer_out:
      return all(f.mixer_out);
    case Factor::mixer_in:
      break;
  }
  const Mamba2Sizes& m = config.mamba2;  // gates, x, B, C, steps
  const int64_t widths[] = {m.n_values(), m.n_values(), m.n_group * m.d_state,
                            m.n_group * m.d_state, m.n_head};
  std::vector<RowFactor> factors;
  bool any = false;
  for (size_t i = 0; i < f.mixer_parts.size(); ++i) {
    const int64_t begin = factors.empty() ? 0 : factors.back().end;
    factors.push_back({begin + widths[i], f.mixer_in * f.mixer_parts[i]});
    any = any || factors.back().factor != 1.0;
  }
  return any ? factors : std::vector<RowFactor>();
}

}  // namespace snapkv::huggingface
