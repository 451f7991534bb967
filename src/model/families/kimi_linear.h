// SPDX-License-Identifier: MIT
// Kimi Linear (arXiv 2510.26692): in three of four layers Kimi Delta Attention, in the others
// multi-head latent attention without a rotation; experts in all but the first layers. Ling 3 has
// it in five of six layers with decays that are not below a floor, and in the others attention with
// a rotation and gates.
#pragma once

#include <array>
#include <string_view>

namespace snapkv {

class MetadataReader;
struct ModelSpec;

/// Family::make_layers of `kimi-linear`.
void make_kimi_linear_layers(const MetadataReader& reader, ModelSpec& spec);

/// Of `bailingmoe3`.
void make_bailingmoe3_layers(const MetadataReader& reader, ModelSpec& spec);

/// Family::own_keys of `kimi-linear`.
inline constexpr std::array<std::string_view, 4> kKimiLinearKeys = {
    "attention.kv_lora_rank", "attention.q_lora_rank", "attention.key_length_mla",
    "ssm.conv_kernel"};
/// Of `bailingmoe3`.
inline constexpr std::array<std::string_view, 5> kBailingmoe3Keys = {
    "attention.kv_lora_rank", "attention.q_lora_rank", "attention.key_length_mla",
    "ssm.conv_kernel", "nextn_predict_layers"};

}  // namespace snapkv
