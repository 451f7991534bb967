// SPDX-License-Identifier: MIT
#include "model/families/mixture_layers.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "format/gguf.h"
#include "model/metadata_reader.h"
#include "model/model_spec.h"

namespace snapkv {
namespace {

constexpr int64_t kMostExpertFf = 1 << 22;

/// Layers of full attention; their networks are still missing.
void add_attention_layers(const MetadataReader& reader, ModelSpec& spec) {
  for (const Heads& heads : read_heads(reader, spec.config, true)) {
    spec.layers.push_back(full_attention_layer(reader, spec, heads));
  }
}

/// .expert_feed_forward_length, or .feed_forward_length where the header has no such key.
FeedForwardPart read_experts_part(const MetadataReader& reader) {
  const char* const key = reader.has("expert_feed_forward_length") ? "expert_feed_forward_length"
                                                                   : "feed_forward_length";
  return {.kind = FeedForwardKind::experts, .n_ff = reader.size(key, kMostExpertFf)};
}

AdjugateSpec read_adjugates(const MetadataReader& reader, int64_t n_expert) {
  constexpr const char* kGroup = "experts_per_group";
  AdjugateSpec adjugates;
  adjugates.n_ff = reader.size("expert_chunk_feed_forward_length", kMostExpertFf);
  adjugates.n_group = reader.size(kGroup, kMostExperts);
  adjugates.factor = static_cast<float>(reader.positive("expert_group_scale"));
  if (n_expert % adjugates.n_group == 0) return adjugates;
  fail(ErrorCode::kBadModel, "{}: {} = {} does not divide {} = {}", reader.file().path(),
       reader.key(kGroup), adjugates.n_group, reader.key("expert_count"), n_expert);
}

}  // namespace

void make_arctic_layers(const MetadataReader& reader, ModelSpec& spec) {
  add_attention_layers(reader, spec);
  FeedForwardPart experts = read_experts_part(reader);
  experts.early = true;
  for (LayerSpec& layer : spec.layers) {
    layer.ffn = {{.kind = FeedForwardKind::dense, .n_ff = spec.config.n_embd}, experts};
  }
}

void make_deepseek2_ocr_layers(const MetadataReader& reader, ModelSpec& spec) {
  const std::string window = reader.key("attention.sliding_window");
  if (const uint64_t n = reader.file().get_uint(window, 0); n > 0) {
    fail(ErrorCode::kBadModel,
         "{}: {} = {}: windows beside which tokens see the picture are not supported",
         reader.file().path(), window, n);
  }
  add_attention_layers(reader, spec);
}

void make_grok_layers(const MetadataReader& reader, ModelSpec& spec) {
  ModelConfig& c = spec.config;
  if (!reader.has("embedding_scale")) c.embedding_scale = 78.38367176906169f;
  if (!reader.has("logit_scale")) c.logit_scale = 0.5773502691896257f;
  const auto scale =
      static_cast<float>(reader.positive("attention.output_scale", 0.08838834764831845));
  const FeedForwardPart experts = read_experts_part(reader);
  add_attention_layers(reader, spec);
  for (int64_t il = 0; il < c.n_layer; ++il) {
    LayerSpec& layer = spec.layers[il];
    layer.scale = scale;
    layer.ffn = {experts};
    if (!reader.has("rope.scaling.yarn_beta_fast")) layer.rotation.yarn.beta_fast = 8.0;
    if (reader.file().find_tensor(fmt::format("blk.{}.ffn_up.weight", il)) == nullptr) continue;
    layer.ffn.push_back({.kind = FeedForwardKind::dense,
                         .n_ff = reader.size("feed_forward_length", kMostExpertFf),
                         .in_sum = true});
    layer.factors.sum = std::sqrt(0.5f);
  }
}

void make_grovemoe_layers(const MetadataReader& reader, ModelSpec& spec) {
  add_attention_layers(reader, spec);
  FeedForwardPart experts = read_experts_part(reader);
  experts.adjugates = read_adjugates(reader, spec.config.n_expert);
  for (LayerSpec& layer : spec.layers) layer.ffn = {experts};
}

}  // namespace snapkv
