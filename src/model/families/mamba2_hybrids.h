// SPDX-License-Identifier: MIT
// Families with mixers of Mamba-2 (arXiv 2405.21060). Most layers have one, and some attention, in
// Granite 4 and Bamba, Nemotron-H and Nemotron 3; every layer has both in Falcon-H1, and a mixer
// alone in models without attention.
#pragma once

#include <array>
#include <string_view>

namespace snapkv {

class MetadataReader;
struct ModelSpec;

/// Family::make_layers of `granitehybrid`: layer il has attention where
/// .attention.head_count_kv[il] is not 0.
void make_granite_hybrid_layers(const MetadataReader& reader, ModelSpec& spec);
/// Of `nemotron_h` and `nemotron_h_moe`: layer il is a feed-forward network where
/// .feed_forward_length[il] is not 0, else attention or a mixer alone.
void make_nemotron_h_layers(const MetadataReader& reader, ModelSpec& spec);
/// Of `falcon-h1`: every layer has attention and a mixer, side by side.
void make_falcon_h1_layers(const MetadataReader& reader, ModelSpec& spec);

/// Of `mamba2`: every layer is a mixer alone.
void make_mamba2_layers(const MetadataReader& reader, ModelSpec& spec);

/// Family::own_keys of all, and of those whose last layers may guess further tokens.
inline constexpr std::array<std::string_view, 1> kMamba2Keys = {"ssm."};
inline constexpr std::array<std::string_view, 2> kNemotronHKeys = {"ssm.", "nextn_predict_layers"};

}  // namespace snapkv
