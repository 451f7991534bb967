// SPDX-License-Identifier: MIT
// RWKV 6 and 7 (arXiv 2404.05892, 2503.14456), and models with their mixers in Qwen's layers. None
// has attention.
#pragma once

#include <array>
#include <string_view>

namespace snapkv {

class MetadataReader;
struct ModelSpec;

/// Family::make_layers of `rwkv7`: .attention.*_lora_rank say of how many values decays, rates and
/// gates are made.
void make_rwkv7_layers(const MetadataReader& reader, ModelSpec& spec);
/// Of `arwkv7`: mixers of RWKV 7, which may have no gates and no norms, and gated networks.
void make_arwkv7_layers(const MetadataReader& reader, ModelSpec& spec);
/// Of `rwkv6`: every .rescale_every_n_layers layers the residual stream is halved.
void make_rwkv6_layers(const MetadataReader& reader, ModelSpec& spec);
/// Of `rwkv6qwen2`: gated linear attention, whose heads may share keys and values, and gated
/// networks.
void make_rwkv6qwen2_layers(const MetadataReader& reader, ModelSpec& spec);

/// Family::own_keys of all.
inline constexpr std::array<std::string_view, 1> kRwkvKeys = {"wkv."};

}  // namespace snapkv
