// SPDX-License-Identifier: MIT
#include "model/families/rwkv.h"

#include <fmt/core.h>

#include <cstdint>
#include <limits>

#include "backend/ops.h"
#include "base/error.h"
#include "format/gguf.h"
#include "model/metadata_reader.h"
#include "model/model_spec.h"

namespace snapkv {
namespace {

constexpr int64_t kMostWkvHead = 1 << 10, kMostLowRank = 1 << 16, kMostNetwork = 1 << 22;

/// A layer with such a mixer, whose ranks are still to be read.
LayerSpec rwkv_layer(const MetadataReader& reader, const ModelSpec& spec, WkvRule rule) {
  constexpr const char* kHeadSize = "wkv.head_size";
  const int64_t n_embd = spec.config.n_embd;
  LayerSpec layer =
      stateless_layer(rule == WkvRule::rwkv7 ? TokenMixerKind::rwkv7 : TokenMixerKind::rwkv6);
  RwkvSpec& s = layer.rwkv;
  s.rule = rule;
  s.head_dim = reader.size(kHeadSize, kMostWkvHead);
  if (n_embd % s.head_dim != 0) {
    fail(ErrorCode::kBadModel, "{}: {} = {} does not divide {} = {}", reader.file().path(),
         reader.key(kHeadSize), s.head_dim, reader.key("embedding_length"), n_embd);
  }
  s.n_head = s.n_head_kv = n_embd / s.head_dim;
  return layer;
}

/// What the layer remembers: the last token that each part has read, and the heads' matrices.
void set_state(const MetadataReader& reader, int64_t n_shifts, int64_t n_embd, LayerSpec& layer) {
  constexpr const char* kShifts = "token_shift_count";
  const uint64_t count = reader.file().get_uint(reader.key(kShifts), n_shifts);
  if (count != static_cast<uint64_t>(n_shifts)) {
    fail(ErrorCode::kBadModel, "{}: {} is {}, expected {} for architecture \"{}\"",
         reader.file().path(), reader.key(kShifts), count, n_shifts, reader.architecture());
  }
  layer.state = {.n_recurrent = n_shifts * n_embd + layer.rwkv.width() * layer.rwkv.head_dim};
}

void set_channel_mix(const MetadataReader& reader, LayerSpec& layer) {
  const int64_t n_ff = reader.size("feed_forward_length", kMostNetwork);
  layer.ffn = {{.kind = FeedForwardKind::channel_mix, .n_ff = n_ff}};
}

LayerSpec rwkv7_layer(const MetadataReader& reader, const ModelSpec& spec) {
  LayerSpec layer = rwkv_layer(reader, spec, WkvRule::rwkv7);
  RwkvSpec& s = layer.rwkv;
  s.decay_rank = reader.size("attention.decay_lora_rank", kMostLowRank);
  s.rate_rank = reader.size("attention.iclr_lora_rank", kMostLowRank);
  s.value_rank = reader.size("attention.value_residual_mix_lora_rank", kMostLowRank);
  // some models have no gates, whatever the rank is
  const bool gated = reader.file().find_tensor("blk.0.time_mix_g1.weight") != nullptr;
  if (gated) s.gate_rank = reader.size("attention.gate_lora_rank", kMostLowRank);
  return layer;
}

LayerSpec rwkv6_layer(const MetadataReader& reader, const ModelSpec& spec, WkvRule rule) {
  LayerSpec layer = rwkv_layer(reader, spec, rule);
  layer.rwkv.mix_rank = reader.size("time_mix_extra_dim", kMostLowRank);
  layer.rwkv.decay_rank = reader.size("time_decay_extra_dim", kMostLowRank);
  return layer;
}

}  // namespace

void make_rwkv7_layers(const MetadataReader& reader, ModelSpec& spec) {
  LayerSpec layer = rwkv7_layer(reader, spec);
  set_state(reader, 2, spec.config.n_embd, layer);
  set_channel_mix(reader, layer);
  spec.layers.assign(spec.config.n_layer, layer);
  spec.config.first_values = true;
}

void make_arwkv7_layers(const MetadataReader& reader, ModelSpec& spec) {
  LayerSpec layer = rwkv7_layer(reader, spec);
  set_state(reader, 1, spec.config.n_embd, layer);
  spec.layers.assign(spec.config.n_layer, layer);
  spec.config.first_values = true;
}

void make_rwkv6_layers(const MetadataReader& reader, ModelSpec& spec) {
  constexpr const char* kRescale = "rescale_every_n_layers";
  LayerSpec layer = rwkv6_layer(reader, spec, WkvRule::rwkv6);
  set_state(reader, 2, spec.config.n_embd, layer);
  set_channel_mix(reader, layer);
  const uint64_t every = reader.file().get_uint(reader.key(kRescale), 0);
  for (int64_t il = 0; il < spec.config.n_layer; ++il) {
    layer.stream_scale = every > 0 && static_cast<uint64_t>(il + 1) % every == 0 ? 0.5f : 1.0f;
    spec.layers.push_back(layer);
  }
}

void make_rwkv6qwen2_layers(const MetadataReader& reader, ModelSpec& spec) {
  constexpr const char* kHeadsKv = "attention.head_count_kv";
  LayerSpec layer = rwkv6_layer(reader, spec, WkvRule::gated);
  RwkvSpec& s = layer.rwkv;
  if (reader.file().get_uint(reader.key(kHeadsKv), 0) > 0) {
    s.n_head_kv = reader.size(kHeadsKv, std::numeric_limits<int32_t>::max());
  }
  if (s.n_head % s.n_head_kv != 0) {
    fail(ErrorCode::kBadModel, "{}: {} = {} does not divide the number of heads, {}",
         reader.file().path(), reader.key(kHeadsKv), s.n_head_kv, s.n_head);
  }
  set_state(reader, 1, spec.config.n_embd, layer);
  spec.layers.assign(spec.config.n_layer, layer);
}

}  // namespace snapkv
