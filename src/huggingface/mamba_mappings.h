// SPDX-License-Identifier: MIT
// Rows of the table in gguf_mappings.cpp: Mamba, Falcon Mamba and Mamba 2, whose layers are mixers
// alone.
#pragma once

#include <array>
#include <string_view>

#include "huggingface/gguf_mapping.h"
#include "huggingface/mamba_config.h"

namespace snapkv::huggingface {

inline constexpr TensorRow kMambaLayer[] = {
    {"norm", "attn_norm", Size::embd},
    {"mixer.in_proj", "ssm_in", Size::mamba_channels_twice, Size::embd},
    {"mixer.conv1d", "ssm_conv1d", Size::mamba_channels, Size::kernel},
    {"mixer.x_proj", "ssm_x", Size::mamba_inputs, Size::mamba_channels},
    {"mixer.dt_proj", "ssm_dt", Size::mamba_channels, Size::mamba_rank},
    {"mixer.A_log", "ssm_a", Size::mamba_channels, Size::mamba_state, Edit::decay_rate, false,
     true},
    {"mixer.D", "ssm_d", Size::mamba_channels, Size::none, Edit::none, false, true},
    {"mixer.out_proj", "ssm_out", Size::embd, Size::mamba_channels},
};

inline constexpr TensorRow kMamba2Layer[] = {
    {"norm", "attn_norm", Size::embd},
    {"mixer.in_proj", "ssm_in", Size::scan_in, Size::embd},
    {"mixer.conv1d", "ssm_conv1d", Size::scan_xbc, Size::kernel},
    {"mixer.A_log", "ssm_a", Size::scan_head, Size::one, Edit::decay_rate, false, true},
    {"mixer.D", "ssm_d", Size::scan_head, Size::one, Edit::none, false, true},
    {"mixer.dt_bias", "ssm_dt.bias", Size::scan_head, Size::none, Edit::none, false, true},
    {"mixer.norm", "ssm_norm", Size::scan_group, Size::scan_group_values},
    {"mixer.out_proj", "ssm_out", Size::embd, Size::scan_values},
};

inline constexpr std::string_view kMamba[] = {"MambaForCausalLM", "FalconMambaForCausalLM"};
inline constexpr std::string_view kMamba2[] = {"Mamba2ForCausalLM"};

inline constexpr std::array kMambaMappings = {
    GgufMapping{.architecture = "mamba",
                .classes = kMamba,
                .layer = kMambaLayer,
                .root = "backbone",
                .embeddings = "embeddings",
                .norm = "backbone.norm_f",
                .ties_embeddings = true,
                .read_own_sizes = read_mamba_sizes,
                .read_own = read_mamba,
                .add_own_keys = add_mamba_keys},
    GgufMapping{.architecture = "mamba2",
                .classes = kMamba2,
                .layer = kMamba2Layer,
                .root = "backbone",
                .embeddings = "embeddings",
                .norm = "backbone.norm_f",
                .read_own_sizes = read_mamba_sizes,
                .read_own = read_mamba2},
};

}  // namespace snapkv::huggingface
