// SPDX-License-Identifier: MIT
#include "model/families/mamba.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/ops.h"
#include "base/error.h"
#include "format/gguf.h"
#include "model/metadata_reader.h"
#include "model/model_spec.h"

namespace snapkv {
namespace {

constexpr int64_t kMostChannels = 1 << 20, kMostChannelState = 1 << 12;

int64_t read_conv_kernel(const MetadataReader& reader) {
  const int64_t n = reader.size("ssm.conv_kernel", kMostTaps);
  if (n >= 2) return n;
  fail(ErrorCode::kBadModel, "{}: {} must be between 2 and {}, it is {}", reader.file().path(),
       reader.key("ssm.conv_kernel"), kMostTaps, n);
}

LayerSpec mamba_layer(const MetadataReader& reader, ScanNorms norms) {
  LayerSpec layer = stateless_layer(TokenMixerKind::mamba);
  layer.mamba = {.n_channel = reader.size("ssm.inner_size", kMostChannels),
                 .d_state = reader.size("ssm.state_size", kMostChannelState),
                 .step_rank = reader.size("ssm.time_step_rank", kMostChannels),
                 .norms = norms};
  layer.conv_kernel = read_conv_kernel(reader);
  const MambaSpec& s = layer.mamba;
  layer.state = {.n_recurrent = s.n_channel * (layer.conv_kernel - 1 + s.d_state)};
  return layer;
}

/// Of PLaMo 2. .ssm.time_step_rank is the number of heads; that of the values which make their
/// steps no key says.
LayerSpec mamba_heads_layer(const MetadataReader& reader, int64_t n_embd) {
  constexpr const char* kHeads = "ssm.time_step_rank";
  const std::string& path = reader.file().path();
  const int64_t n_values = reader.size("ssm.inner_size", kMostChannels);
  const int64_t n_head = reader.size(kHeads, kMostChannels);
  if (n_values % n_head != 0) {
    fail(ErrorCode::kBadModel, "{}: {} = {} does not divide {} = {}", path, reader.key(kHeads),
         n_head, reader.key("ssm.inner_size"), n_values);
  }
  LayerSpec layer = stateless_layer(TokenMixerKind::mamba_heads);
  layer.mamba2 = {.n_group = 1,
                  .n_head = n_head,
                  .d_state = reader.size("ssm.state_size", kMostChannelState),
                  .d_head = n_values / n_head,
                  .normed = false,
                  .step_rank = std::max<int64_t>(64, n_embd / 16)};
  layer.conv_kernel = read_conv_kernel(reader);
  layer.state = {.n_recurrent = n_values * (layer.conv_kernel - 1 + layer.mamba2.d_state)};
  return layer;
}

/// The epsilon of norms of steps, B and C, where it is not that of the other norms.
float read_scan_eps(const GgufFile& file) {
  constexpr const char* kKey = "snapkv.ssm_norm_epsilon";
  if (!file.has(kKey)) return 0.0f;
  const auto eps = static_cast<float>(file.get_float(kKey));
  if (eps > 0.0f && eps < 1.0f) return eps;
  fail(ErrorCode::kBadModel, "{}: {} is {}, expected more than 0 and less than 1", file.path(),
       kKey, file.get_float(kKey));
}

/// All of a width, but experts where a layer has a router: no key says where. Where no layer has
/// one, .expert_count says nothing.
void add_jamba_networks(const MetadataReader& reader, ModelSpec& spec) {
  constexpr int64_t kMostFf = 1 << 22;
  const int64_t n_ff = reader.size("feed_forward_length", kMostFf);
  bool has_experts = false;
  for (int64_t il = 0; il < spec.config.n_layer; ++il) {
    const std::string router = fmt::format("blk.{}.ffn_gate_inp.weight", il);
    const bool routed = reader.file().find_tensor(router) != nullptr;
    if (routed && spec.config.n_expert == 0) {
      fail(ErrorCode::kBadModel,
           "{}: {} is {}, expected the number of experts: the file has tensor {}",
           reader.file().path(), reader.key("expert_count"),
           reader.has("expert_count") ? "0" : "missing", router);
    }
    spec.layers[il].ffn = {
        {.kind = routed ? FeedForwardKind::experts : FeedForwardKind::dense, .n_ff = n_ff}};
    has_experts = has_experts || routed;
  }
  if (!has_experts) spec.config.n_expert = spec.config.n_expert_used = 0;
}

}  // namespace

void make_jamba_layers(const MetadataReader& reader, ModelSpec& spec) {
  const LayerSpec mamba = mamba_layer(reader, ScanNorms::weighted);
  for (const Heads& heads : read_heads(reader, spec.config, false)) {
    const bool attends = heads.n_head_kv > 0;
    spec.layers.push_back(attends ? full_attention_layer(reader, spec, heads) : mamba);
    spec.layers.back().rotation = RotationSpec();
  }
  require_attention(reader, spec);
  add_jamba_networks(reader, spec);
}

void make_plamo2_layers(const MetadataReader& reader, ModelSpec& spec) {
  const LayerSpec mamba = mamba_heads_layer(reader, spec.config.n_embd);
  for (const Heads& heads : read_heads(reader, spec.config, false)) {
    const bool attends = heads.n_head_kv > 0;
    spec.layers.push_back(attends ? full_attention_layer(reader, spec, heads) : mamba);
  }
  require_attention(reader, spec);
}

void make_mamba_layers(const MetadataReader& reader, ModelSpec& spec) {
  const bool normed = reader.flag("ssm.dt_b_c_rms", false);
  LayerSpec mamba = mamba_layer(reader, normed ? ScanNorms::plain : ScanNorms::none);
  mamba.mamba.norm_eps = read_scan_eps(reader.file());
  mamba.has_ffn = false;
  spec.layers.assign(spec.config.n_layer, mamba);
}

}  // namespace snapkv
