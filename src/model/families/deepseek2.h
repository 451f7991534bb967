// SPDX-License-Identifier: MIT
// DeepSeek V2 (arXiv 2405.04434) and V3 (arXiv 2412.19437), and the models built like them:
// multi-head latent attention, and a mixture of experts with shared ones in all but the first
// layers.
#pragma once

#include <array>
#include <string_view>

namespace snapkv {

class MetadataReader;
struct LayerSpec;
struct ModelSpec;

/// Family::make_layers of `deepseek2` and `mistral4`.
void make_deepseek2_layers(const MetadataReader& reader, ModelSpec& spec);

/// Of `deepseek32` and `glm-dsa`: as `deepseek2`, with an indexer in each layer that chooses the
/// tokens that queries attend to.
void make_deepseek32_layers(const MetadataReader& reader, ModelSpec& spec);

/// Of `minicpm3`: latent attention in models without experts, with scales of embeddings, residual
/// stream and logits.
void make_minicpm3_layers(const MetadataReader& reader, ModelSpec& spec);
/// Of `plm`: latent attention in models without experts.
void make_plm_layers(const MetadataReader& reader, ModelSpec& spec);

/// A layer with latent attention of other families, but for its number of heads.
LayerSpec plain_latent_layer(const MetadataReader& reader, bool rotated);

/// Family::own_keys of `minicpm3` and `plm`.
inline constexpr std::array<std::string_view, 2> kDenseLatentKeys = {"attention.kv_lora_rank",
                                                                     "attention.q_lora_rank"};
/// Of `deepseek2` and `mistral4`.
inline constexpr std::array<std::string_view, 5> kDeepseek2Keys = {
    "attention.kv_lora_rank", "attention.q_lora_rank", "attention.key_length_mla",
    "expert_shared_count", "nextn_predict_layers"};

/// Of `deepseek32` and `glm-dsa`.
inline constexpr std::array<std::string_view, 6> kDeepseek32Keys = {
    "attention.kv_lora_rank", "attention.q_lora_rank", "attention.key_length_mla",
    "attention.indexer.",     "expert_shared_count",   "nextn_predict_layers"};

}  // namespace snapkv
