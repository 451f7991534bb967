// SPDX-License-Identifier: MIT
// Families most of whose layers have a mixer of Mamba-2 (arXiv 2405.21060), and some attention:
// Granite 4 and Bamba, Nemotron-H and Nemotron 3.
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

/// Family::own_keys of all.
inline constexpr std::array<std::string_view, 1> kMamba2Keys = {"ssm."};

}  // namespace snapkv
