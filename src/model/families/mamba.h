// SPDX-License-Identifier: MIT
// Families with mixers of Mamba (arXiv 2312.00752): in most layers of Jamba, and in all of models
// without attention.
#pragma once

#include <array>
#include <string_view>

namespace snapkv {

class MetadataReader;
struct ModelSpec;

/// Family::make_layers of `jamba`: layer il has attention, without a rotation, where
/// .attention.head_count_kv[il] is not 0, and experts where it has a router.
void make_jamba_layers(const MetadataReader& reader, ModelSpec& spec);

/// Of `mamba`: every layer is a mixer alone. .ssm.dt_b_c_rms says whether it has norms,
/// and snapkv.ssm_norm_epsilon their epsilon where it is another than that of the other norms.
void make_mamba_layers(const MetadataReader& reader, ModelSpec& spec);

/// Of `plamo2`: layer il has attention where .attention.head_count_kv[il] is not 0, and a mixer of
/// heads elsewhere.
void make_plamo2_layers(const MetadataReader& reader, ModelSpec& spec);

/// Family::own_keys of all.
inline constexpr std::array<std::string_view, 1> kMambaKeys = {"ssm."};

}  // namespace snapkv
