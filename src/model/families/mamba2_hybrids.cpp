// SPDX-License-Identifier: MIT
#include "model/families/mamba2_hybrids.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "backend/ops.h"
#include "base/error.h"
#include "format/gguf.h"
#include "model/metadata_reader.h"
#include "model/model_spec.h"

namespace snapkv {
namespace {

constexpr int64_t kMostScanHeads = 1 << 12, kMostScanWidth = 1 << 12;

[[noreturn]] void fail_multiple(const MetadataReader& reader, const char* name, int64_t value,
                                const char* other, int64_t other_value) {
  fail(ErrorCode::kBadModel, "{}: {} = {} is not a multiple of {} = {}", reader.file().path(),
       reader.key(name), value, reader.key(other), other_value);
}

Mamba2Spec read_mamba2(const MetadataReader& reader) {
  Mamba2Spec s;
  s.n_group = reader.size("ssm.group_count", kMostScanHeads);
  s.n_head = reader.size("ssm.time_step_rank", kMostScanHeads);
  s.d_state = reader.size("ssm.state_size", kMostScanWidth);
  const int64_t n_values = reader.size("ssm.inner_size", s.n_head * kMostScanWidth);
  if (n_values % s.n_head != 0) {
    fail_multiple(reader, "ssm.inner_size", n_values, "ssm.time_step_rank", s.n_head);
  }
  if (s.n_head % s.n_group != 0) {
    fail_multiple(reader, "ssm.time_step_rank", s.n_head, "ssm.group_count", s.n_group);
  }
  s.d_head = n_values / s.n_head;
  return s;
}

LayerSpec mamba2_layer(const MetadataReader& reader) {
  LayerSpec layer;
  layer.mixer = TokenMixerKind::mamba2;
  layer.attention = AttentionKind::none;
  layer.compressed = false;
  layer.mamba2 = read_mamba2(reader);
  layer.conv_kernel = reader.size("ssm.conv_kernel", kMostTaps);
  if (layer.conv_kernel < 2) {
    fail(ErrorCode::kBadModel, "{}: {} must be between 2 and {}, it is {}", reader.file().path(),
         reader.key("ssm.conv_kernel"), kMostTaps, layer.conv_kernel);
  }
  const Mamba2Spec& s = layer.mamba2;
  layer.state = {.n_recurrent = s.n_xbc() * (layer.conv_kernel - 1) + s.d_state * s.n_values()};
  return layer;
}

/// Whether the mixers have norms: no key says it.
bool has_mixer_norms(const MetadataReader& reader, int64_t n_layer) {
  for (int64_t il = 0; il < n_layer; ++il) {
    if (reader.file().find_tensor(fmt::format("blk.{}.ssm_norm.weight", il)) != nullptr) {
      return true;
    }
  }
  return false;
}

/// What a folder that is read in place has beside its matrices, one number each: attention_in,
/// keys, attention_out, gate, down, mixer_in, mixer_out, and of the mixer's gates, x, B, C and
/// steps. Empty in a file, which has these factors in the matrices.
std::vector<double> read_falcon_factors(const GgufFile& file) {
  constexpr const char* kKey = "snapkv.falcon_h1.factors";
  constexpr int64_t kNumber = 12;
  const auto it = file.metadata().find(kKey);
  if (it == file.metadata().end()) return {};
  const auto* factors = std::get_if<std::vector<double>>(&it->second.value);
  const bool usable = factors != nullptr && std::ssize(*factors) == kNumber &&
                      std::all_of(factors->begin(), factors->end(),
                                  [](double f) { return std::isfinite(f) && f > 0; });
  if (usable) return *factors;
  fail(ErrorCode::kBadModel, "{}: {} must be an array of {} positive numbers", file.path(), kKey,
       kNumber);
}

/// Queries, keys and values are linear in what attention reads, and scores in queries and keys.
void set_factors(const std::vector<double>& f, LayerSpec& layer) {
  if (f.empty()) return;
  const double attention_in = f[0], keys = f[1], mixer_in = f[5];
  layer.scale = static_cast<float>(layer.scale * attention_in * attention_in * keys);
  layer.factors = {.attention_out = static_cast<float>(attention_in * f[2]),
                   .gate = static_cast<float>(f[3]),
                   .down = static_cast<float>(f[4]),
                   .mixer_gate = static_cast<float>(mixer_in * f[7]),
                   .mixer_x = static_cast<float>(mixer_in * f[8]),
                   .mixer_b = static_cast<float>(mixer_in * f[9]),
                   .mixer_c = static_cast<float>(mixer_in * f[10]),
                   .mixer_step = static_cast<float>(mixer_in * f[11]),
                   .mixer_out = static_cast<float>(f[6])};
}

}  // namespace

void make_granite_hybrid_layers(const MetadataReader& reader, ModelSpec& spec) {
  const LayerSpec mamba2 = mamba2_layer(reader);
  const bool rotated = reader.flag("rope.scaling.finetuned", true);
  for (const Heads& heads : read_heads(reader, spec.config, false)) {
    const bool attends = heads.n_head_kv > 0;
    spec.layers.push_back(attends ? full_attention_layer(reader, spec, heads) : mamba2);
    if (!rotated) spec.layers.back().rotation = RotationSpec();
  }
  require_attention(reader, spec);
}

void make_nemotron_h_layers(const MetadataReader& reader, ModelSpec& spec) {
  constexpr int64_t kMostFf = 1 << 22;
  const ModelConfig& c = spec.config;
  const LayerSpec mamba2 = mamba2_layer(reader);
  const std::vector<Heads> heads = read_heads(reader, c, false);
  const std::vector<int64_t> n_ff = reader.sizes("feed_forward_length", c.n_layer, {}, 0, kMostFf);
  for (int64_t il = 0; il < c.n_layer; ++il) {
    const bool attends = heads[il].n_head_kv > 0;
    if (n_ff[il] > 0) {
      spec.layers.push_back(stateless_layer(TokenMixerKind::none));
      if (c.n_expert == 0) spec.layers.back().ffn = {{FeedForwardKind::dense, n_ff[il]}};
      continue;
    }
    spec.layers.push_back(attends ? full_attention_layer(reader, spec, heads[il]) : mamba2);
    spec.layers.back().rotation = RotationSpec();
    spec.layers.back().has_ffn = false;
  }
  require_attention(reader, spec);
}

void make_falcon_h1_layers(const MetadataReader& reader, ModelSpec& spec) {
  LayerSpec mamba2 = mamba2_layer(reader);
  mamba2.mamba2.normed = has_mixer_norms(reader, spec.config.n_layer);
  const std::vector<double> factors = read_falcon_factors(reader.file());
  for (const Heads& heads : read_heads(reader, spec.config, true)) {
    LayerSpec layer = full_attention_layer(reader, spec, heads);
    layer.mixer = TokenMixerKind::attention_and_mamba2;
    layer.mamba2 = mamba2.mamba2;
    layer.conv_kernel = mamba2.conv_kernel;
    layer.state.n_recurrent = mamba2.state.n_recurrent;
    set_factors(factors, layer);
    spec.layers.push_back(layer);
  }
}

void make_mamba2_layers(const MetadataReader& reader, ModelSpec& spec) {
  LayerSpec mamba2 = mamba2_layer(reader);
  mamba2.has_ffn = false;
  spec.layers.assign(spec.config.n_layer, mamba2);
}

}  // namespace snapkv
