// SPDX-License-Identifier: MIT
// LFM2 (arXiv 2511.23404): most layers mix tokens by a short convolution with gates, some by
// grouped-query attention.
#pragma once

#include <array>
#include <string_view>

namespace snapkv {

class MetadataReader;
struct ModelSpec;

/// Family::make_layers: layer il has attention where .attention.head_count_kv[il] is not 0.
void make_lfm2_layers(const MetadataReader& reader, ModelSpec& spec);

/// Family::own_keys
inline constexpr std::array<std::string_view, 1> kLfm2Keys = {"shortconv."};

}  // namespace snapkv
