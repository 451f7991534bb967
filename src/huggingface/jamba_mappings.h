// SPDX-License-Identifier: MIT
// Rows of the table in gguf_mappings.cpp: Jamba, with experts in some layers or without.
#pragma once

#include <array>
#include <string_view>

#include "huggingface/gguf_mapping.h"

namespace snapkv::huggingface {

/// Attention or a mixer of Mamba, and a dense network or a router.
inline constexpr TensorRow kJambaLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd, Edit::none, true},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd, Edit::none, true},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd, Edit::none, true},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q, Edit::none, true},
    {"mamba.in_proj", "ssm_in", Size::mamba_channels_twice, Size::embd, Edit::none, true},
    {"mamba.conv1d", "ssm_conv1d", Size::mamba_channels, Size::kernel, Edit::none, true},
    {"mamba.x_proj", "ssm_x", Size::mamba_inputs, Size::mamba_channels, Edit::none, true},
    {"mamba.dt_layernorm", "ssm_dt_norm", Size::mamba_rank, Size::none, Edit::none, true},
    {"mamba.b_layernorm", "ssm_b_norm", Size::mamba_state, Size::none, Edit::none, true},
    {"mamba.c_layernorm", "ssm_c_norm", Size::mamba_state, Size::none, Edit::none, true},
    {"mamba.dt_proj", "ssm_dt", Size::mamba_channels, Size::mamba_rank, Edit::none, true},
    {"mamba.A_log", "ssm_a", Size::mamba_channels, Size::mamba_state, Edit::decay_rate, true, true},
    {"mamba.D", "ssm_d", Size::mamba_channels, Size::none, Edit::none, true, true},
    {"mamba.out_proj", "ssm_out", Size::embd, Size::mamba_channels, Edit::none, true},
    {"pre_ff_layernorm", "ffn_norm", Size::embd},
    {"feed_forward.gate_proj", "ffn_gate", Size::ff, Size::embd, Edit::none, true},
    {"feed_forward.up_proj", "ffn_up", Size::ff, Size::embd, Edit::none, true},
    {"feed_forward.down_proj", "ffn_down", Size::embd, Size::ff, Edit::none, true},
};

inline constexpr TensorRow kJambaRouter[] = {
    {"feed_forward.router", "ffn_gate_inp", Size::expert, Size::embd, Edit::none, true},
};

inline constexpr TensorRow kJambaExperts[] = {
    {"gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"up_proj", "ffn_up", Size::ff, Size::embd},
    {"down_proj", "ffn_down", Size::embd, Size::ff},
};

inline constexpr std::string_view kJamba[] = {"JambaForCausalLM"};

/// has_jamba_layers_of() (jamba_config.h) tells them apart.
inline constexpr std::array kJambaMappings = {
    GgufMapping{.architecture = "jamba",
                .classes = kJamba,
                .layer = kJambaLayer,
                .norm = "model.final_layernorm"},
    GgufMapping{.architecture = "jamba",
                .classes = kJamba,
                .layer = kJambaLayer,
                .ffn = kJambaRouter,
                .experts = kJambaExperts,
                .expert_prefix = "feed_forward.experts.",
                .norm = "model.final_layernorm"},
};

}  // namespace snapkv::huggingface
