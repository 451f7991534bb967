// SPDX-License-Identifier: MIT
#include "model/families/deepseek2.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "format/gguf.h"
#include "model/metadata_reader.h"
#include "model/model_spec.h"

namespace snapkv {
namespace {

constexpr int64_t kMostQueryHeads = 1 << 14, kMostHeadWidth = 1 << 12, kMostRank = 1 << 14;

/// The widths of a head's query and value. Files of before April 2025 have them where newer ones
/// have the widths of what is remembered, and one matrix for keys and values of all heads.
struct HeadWidths {
  int64_t key = 0, value = 0;
  bool joined = false;
};

HeadWidths read_widths(const MetadataReader& reader) {
  const bool joined = !reader.has("attention.key_length_mla");
  const std::string ending = joined ? "" : "_mla";
  return {reader.size("attention.key_length" + ending, kMostHeadWidth),
          reader.size("attention.value_length" + ending, kMostHeadWidth), joined};
}

/// n_shared: .rope.dimension_count
LatentSpec read_latent(const MetadataReader& reader, const HeadWidths& widths, int64_t n_shared) {
  const std::string& path = reader.file().path();
  if (n_shared >= widths.key) {
    fail(ErrorCode::kBadModel, "{}: {} = {} must be less than the width of a query, {}", path,
         reader.key("rope.dimension_count"), n_shared, widths.key);
  }
  LatentSpec latent;
  latent.rank = reader.size("attention.kv_lora_rank", kMostRank);
  latent.n_shared = n_shared;
  latent.n_own = widths.key - n_shared;
  latent.n_value = widths.value;
  latent.joined = widths.joined;
  latent.q_rank =
      std::min<int64_t>(kMostRank, reader.file().get_uint(reader.key("attention.q_lora_rank"), 0));
  // whole blocks of q8_0, and whole vectors
  if (latent.rank % 32 != 0 || n_shared % 8 != 0) {
    fail(ErrorCode::kBadModel, "{}: {} = {} and {} = {}; supported are multiples of 32 and of 8",
         path, reader.key("attention.kv_lora_rank"), latent.rank,
         reader.key("rope.dimension_count"), n_shared);
  }
  return latent;
}

/// Scores grow with the context's factor by DeepSeek's convention for YaRN: with m =
/// mscale_all_dim, whose tenth is .rope.scaling.yarn_log_multiplier in files of these families, by
/// (1 + 0.1 m ln(factor))^2, while rotated values have magnitude 1 where mscale is m too. Files
/// don't have mscale; as llama.cpp does, it is taken to be m in `deepseek2` and 1 in others.
float read_scale(const MetadataReader& reader, int64_t width, RotationSpec& rotation) {
  const double root = std::sqrt(static_cast<double>(width));
  if (rotation.yarn.n_ctx_original == 0 || rotation.linear_factor <= 1.0) {
    return static_cast<float>(1.0 / root);
  }
  const double multiplier = 10.0 * reader.not_negative("rope.scaling.yarn_log_multiplier", 0.0);
  const auto magnitude = [&](double m) { return 1.0 + 0.1 * m * std::log(rotation.linear_factor); };
  double ratio = magnitude(1.0) / magnitude(multiplier);
  if (multiplier > 0.0 && reader.architecture() == "deepseek2") ratio = 1.0;
  ratio *= reader.positive("rope.scaling.attn_factor", 1.0);
  rotation.magnitude = static_cast<float>(ratio);
  const double scale = ratio * magnitude(multiplier);
  return static_cast<float>(scale * scale / root);
}

/// Whether each layer has an indexer. Files of GLM 5.2, whose context is longer, say with numbers
/// which ones have, or do not say it; the other layers take the tokens that an earlier one has
/// chosen.
bool all_choose(const MetadataReader& reader, int64_t n_layer) {
  constexpr const char* kTypes = "attention.indexer.types";
  constexpr int64_t kLongContext = 1 << 20;
  if (!reader.has(kTypes)) return reader.size("context_length", INT32_MAX) < kLongContext;
  const std::vector<int64_t> types = reader.sizes(kTypes, n_layer, {}, 0, 1);
  return std::find(types.begin(), types.end(), 0) == types.end();
}

/// The indexer of each layer; none if layers choose together, which limits contexts to what the
/// first one would choose.
IndexSpec read_index(const MetadataReader& reader, const RotationSpec& rotation, ModelSpec& spec) {
  IndexSpec index;
  index.n_head = reader.size("attention.indexer.head_count", kMostQueryHeads);
  index.head_dim = reader.size("attention.indexer.key_length", kMostHeadWidth);
  index.top_k = reader.size("attention.indexer.top_k", INT32_MAX);
  index.rotation = rotation;
  index.rotation.layout = spec.family->index_rope;
  if (index.head_dim % 8 != 0 || index.head_dim < rotation.n_rot) {
    fail(ErrorCode::kBadModel, "{}: {} = {}; supported are multiples of 8 from {} = {} on",
         reader.file().path(), reader.key("attention.indexer.key_length"), index.head_dim,
         reader.key("rope.dimension_count"), rotation.n_rot);
  }
  if (all_choose(reader, spec.config.n_layer)) return index;
  spec.config.n_unchosen = index.top_k;
  return {};
}

/// Without a rotation and without a scale.
LayerSpec latent_layer(const LatentSpec& latent) {
  LayerSpec layer;
  layer.mixer = TokenMixerKind::latent;
  layer.latent = latent;
  layer.state = {.n_head = 1,
                 .head_dim_k = latent.n_shared + latent.rank,
                 .head_dim_v = latent.rank,
                 .v_in_k = true};
  return layer;
}

LayerSpec rotated_latent_layer(const MetadataReader& reader) {
  RotationSpec rotation = read_rotation(reader, RopeLayout::norm, kMostHeadWidth);
  LayerSpec layer = latent_layer(read_latent(reader, read_widths(reader), rotation.n_rot));
  layer.scale = read_scale(reader, layer.latent.n_key(), rotation);
  layer.rotation = rotation;
  return layer;
}

/// Layers of models without experts. Files have one matrix for keys and values of all heads, and
/// may leave out the width of a value, which is then n_embd / n_head.
void make_dense_latent_layers(const MetadataReader& reader, ModelSpec& spec) {
  const ModelConfig& c = spec.config;
  const std::vector<int64_t> n_head =
      reader.sizes("attention.head_count", c.n_layer, {}, 1, kMostQueryHeads);
  const RotationSpec rotation = read_rotation(reader, spec.family->rope, kMostHeadWidth);
  for (int64_t il = 0; il < c.n_layer; ++il) {
    const int64_t otherwise = std::max<int64_t>(1, c.n_embd / n_head[il]);
    const HeadWidths widths = {
        .key = reader.size("attention.key_length", kMostHeadWidth),
        .value = reader.size("attention.value_length", otherwise, kMostHeadWidth),
        .joined = true};
    LayerSpec layer = latent_layer(read_latent(reader, widths, rotation.n_rot));
    layer.n_head = n_head[il];
    layer.rotation = rotation;
    layer.scale = 1.0f / std::sqrt(static_cast<float>(layer.latent.n_key()));
    spec.layers.push_back(layer);
  }
}

/// .leading_dense_block_count: the number of first layers without experts.
int64_t count_dense_layers(const MetadataReader& reader, int64_t n_layer) {
  const uint64_t n = reader.file().get_uint(reader.key("leading_dense_block_count"), 0);
  return static_cast<int64_t>(std::min<uint64_t>(n, n_layer));
}

std::vector<FeedForwardPart> expert_parts(const MetadataReader& reader) {
  const int64_t width = reader.size("expert_feed_forward_length", 1 << 22);
  std::vector<FeedForwardPart> parts = {{FeedForwardKind::experts, width}};
  const uint64_t n_shared = reader.file().get_uint(reader.key("expert_shared_count"), 0);
  if (n_shared > 1024) {
    fail(ErrorCode::kBadModel, "{}: {} is {}, expected at most 1024", reader.file().path(),
         reader.key("expert_shared_count"), n_shared);
  }
  if (n_shared > 0) {
    parts.push_back({FeedForwardKind::shared_expert, width * static_cast<int64_t>(n_shared)});
  }
  return parts;
}

/// Files of GLM-4.7-Flash have no .expert_gating_func; llama.cpp knows them by these sizes.
bool is_glm_flash(const MetadataReader& reader, const ModelConfig& c) {
  return !reader.has("expert_gating_func") && (c.n_layer == 47 || c.n_layer == 48) &&
         c.n_vocab == 154880;
}

/// Adds layers like `layer`, with their own numbers of heads, and with experts but in the first
/// ones.
void add_latent_layers(const MetadataReader& reader, LayerSpec layer, ModelSpec& spec) {
  const ModelConfig& c = spec.config;
  const std::vector<int64_t> n_head =
      reader.sizes("attention.head_count", c.n_layer, {}, 1, kMostQueryHeads);
  const std::vector<FeedForwardPart> experts = expert_parts(reader);
  const int64_t n_dense = count_dense_layers(reader, c.n_layer);
  for (int64_t il = 0; il < c.n_layer; ++il) {
    layer.n_head = n_head[il];
    if (il >= n_dense) layer.ffn = experts;
    spec.layers.push_back(layer);
  }
}

}  // namespace

LayerSpec plain_latent_layer(const MetadataReader& reader, bool rotated) {
  const HeadWidths widths = {.key = reader.size("attention.key_length_mla", kMostHeadWidth),
                             .value = reader.size("attention.value_length_mla", kMostHeadWidth)};
  const int64_t n_shared = reader.size("rope.dimension_count", kMostHeadWidth);
  LayerSpec layer = latent_layer(read_latent(reader, widths, n_shared));
  if (rotated) layer.rotation = read_rotation(reader, RopeLayout::norm, kMostHeadWidth);
  layer.scale = 1.0f / std::sqrt(static_cast<float>(layer.latent.n_key()));
  return layer;
}

void make_deepseek2_layers(const MetadataReader& reader, ModelSpec& spec) {
  if (is_glm_flash(reader, spec.config)) spec.config.routing.score = ExpertScore::sigmoid;
  add_latent_layers(reader, rotated_latent_layer(reader), spec);
}

void make_deepseek32_layers(const MetadataReader& reader, ModelSpec& spec) {
  LayerSpec layer = rotated_latent_layer(reader);
  if (layer.latent.q_rank == 0) {
    fail(ErrorCode::kBadModel,
         "{}: {} is 0 or missing; indexers make their queries of so many values",
         reader.file().path(), reader.key("attention.q_lora_rank"));
  }
  layer.latent.index = read_index(reader, layer.rotation, spec);
  layer.state.head_dim_k += layer.latent.index.head_dim;
  add_latent_layers(reader, layer, spec);
}

// Files do not have the scales, which are MiniCPM3-4B's in llama.cpp: embeddings times 12, what
// blocks add by 1.4 / sqrt(n_layer), logits by 256 / n_embd.
void make_minicpm3_layers(const MetadataReader& reader, ModelSpec& spec) {
  ModelConfig& c = spec.config;
  const auto n_layer = static_cast<float>(c.n_layer), n_embd = static_cast<float>(c.n_embd);
  if (!reader.has("embedding_scale")) c.embedding_scale = 12.0f;
  if (!reader.has("residual_scale")) c.residual_scale = 1.4f / std::sqrt(n_layer);
  if (!reader.has("logit_scale")) c.logit_scale = 256.0f / n_embd;
  make_dense_latent_layers(reader, spec);
}

void make_plm_layers(const MetadataReader& reader, ModelSpec& spec) {
  make_dense_latent_layers(reader, spec);
}

}  // namespace snapkv
