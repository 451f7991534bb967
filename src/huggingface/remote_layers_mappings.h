// SPDX-License-Identifier: MIT
// Rows of the table in gguf_mappings.cpp: models without experts that transformers has no class for
// (remote_layers_config.h).
#pragma once

#include <array>
#include <string_view>

#include "huggingface/gguf_mapping.h"
#include "huggingface/remote_layers_config.h"

namespace snapkv::huggingface {

/// Neighbouring values are rotated in the folder too.
inline constexpr TensorRow kPlmLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::latent_q, Size::embd},
    {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa", Size::latent_row, Size::embd},
    {"self_attn.kv_a_layernorm", "attn_kv_a_norm", Size::latent_rank},
    {"self_attn.kv_b_proj", "attn_kv_b", Size::latent_heads, Size::latent_rank},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::mixer_values},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

/// Norms compute with 1 + w, 1 / 5 + w or 1 / 5^1.5 + w. GGUF's names of some have no ending.
inline constexpr TensorRow kPlamo3Layer[] = {
    {"pre_mixer_norm", "attn_norm", Size::embd, Size::none, Edit::add_one},
    {"mixer.qkv_proj", "attn_qkv", Size::qkv, Size::embd},
    {"mixer.o_proj", "attn_output", Size::embd, Size::q},
    {"mixer.q_norm", "attn_q_norm", Size::head_dim, Size::none, Edit::add_one},
    {"mixer.k_norm", "attn_k_norm", Size::head_dim, Size::none, Edit::add_one},
    {"post_mixer_norm.weight", "post_attention_norm", Size::embd, Size::none, Edit::add_fifth,
     false, true},
    {"pre_mlp_norm", "ffn_norm", Size::embd, Size::none, Edit::add_one},
    {"mlp.gate_up_proj", "ffn_up", Size::ff_twice, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
    {"post_mlp_norm.weight", "post_ffw_norm", Size::embd, Size::none, Edit::add_small, false, true},
};

/// Attention, or a mixer between Mamba and Mamba-2. Norms as above, but those within mixers.
inline constexpr TensorRow kPlamo2Layer[] = {
    {"pre_mixer_norm", "attn_norm", Size::embd, Size::none, Edit::add_one},
    {"mixer.qkv_proj", "attn_qkv", Size::qkv, Size::embd, Edit::none, true},
    {"mixer.q_weight", "attn_q_norm.weight", Size::head, Size::head_dim, Edit::none, true, true},
    {"mixer.k_weight", "attn_k_norm.weight", Size::head_kv, Size::head_dim, Edit::none, true, true},
    {"mixer.o_proj", "attn_output", Size::embd, Size::q, Edit::none, true},
    {"mixer.in_proj", "ssm_in", Size::mamba_channels_twice, Size::embd, Edit::none, true},
    {"mixer.conv1d", "ssm_conv1d", Size::mamba_channels, Size::kernel, Edit::none, true},
    {"mixer.bcdt_proj", "ssm_x", Size::mamba_inputs, Size::mamba_channels, Edit::none, true},
    {"mixer.dt_norm_weight", "ssm_dt_norm", Size::mamba_rank, Size::none, Edit::none, true, true},
    {"mixer.B_norm_weight", "ssm_b_norm", Size::mamba_state, Size::none, Edit::none, true, true},
    {"mixer.C_norm_weight", "ssm_c_norm", Size::mamba_state, Size::none, Edit::none, true, true},
    {"mixer.dt_proj", "ssm_dt", Size::mamba_head, Size::mamba_rank, Edit::none, true},
    {"mixer.dt_bias", "ssm_dt.bias", Size::mamba_head, Size::none, Edit::none, true, true},
    {"mixer.A_log", "ssm_a", Size::mamba_head, Size::none, Edit::decay_rate, true, true},
    {"mixer.D", "ssm_d", Size::mamba_head, Size::none, Edit::none, true, true},
    {"mixer.out_proj", "ssm_out", Size::embd, Size::mamba_channels, Edit::none, true},
    {"post_mixer_norm.weight", "post_attention_norm", Size::embd, Size::none, Edit::add_fifth,
     false, true},
    {"pre_mlp_norm", "ffn_norm", Size::embd, Size::none, Edit::add_one},
    {"mlp.gate_up_proj", "ffn_up", Size::ff_twice, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
    {"post_mlp_norm.weight", "post_ffw_norm", Size::embd, Size::none, Edit::add_small, false, true},
};

/// Attention, a matrix or nothing in its place, and a network or none.
inline constexpr TensorRow kDeciLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd, Size::none, Edit::none, true},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd, Edit::permute_q, true},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd, Edit::permute_k, true},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd, Edit::none, true},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q, Edit::none, true},
    {"self_attn.linear_attn", "attn_output", Size::embd, Size::embd, Edit::none, true},
    {"post_attention_layernorm", "ffn_norm", Size::embd, Size::none, Edit::none, true},
    {"mlp.gate_proj", "ffn_gate", Size::ff, Size::embd, Edit::none, true},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd, Edit::none, true},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff, Edit::none, true},
};

/// Norms have no weights; results of both blocks have a factor, and so have the embeddings, which
/// each layer adds again.
inline constexpr TensorRow kTalkieLayer[] = {
    {"attn.attn_query", "attn_q", Size::q, Size::embd, Edit::turned_back},
    {"attn.attn_key", "attn_k", Size::kv, Size::embd, Edit::turned_back},
    {"attn.attn_value", "attn_v", Size::kv, Size::embd},
    {"attn.attn_resid", "attn_output", Size::embd, Size::q},
    {"attn.head_gain.head_g", "attn_q_norm.weight", Size::head, Size::one, Edit::none, false, true},
    {"attn_gain.a_g", "attn_output.scale", Size::one, Size::none, Edit::none, false, true},
    {"mlp.mlp_gate", "ffn_gate", Size::ff, Size::embd},
    {"mlp.mlp_linear", "ffn_up", Size::ff, Size::embd},
    {"mlp.mlp_resid", "ffn_down", Size::embd, Size::ff},
    {"mlp_gain.a_g", "ffn_down.scale", Size::one, Size::none, Edit::none, false, true},
    {"embed_skip.a_g", "layer_output_scale.weight", Size::one, Size::none, Edit::none, false, true},
};

inline constexpr std::string_view kPlm[] = {"PLMForCausalLM"};
inline constexpr std::string_view kPlamo2[] = {"Plamo2ForCausalLM", "PLaMo2ForCausalLM"};
inline constexpr std::string_view kPlamo3[] = {"Plamo3ForCausalLM", "PLaMo3ForCausalLM"};
inline constexpr std::string_view kDeci[] = {"DeciLMForCausalLM"};
inline constexpr std::string_view kTalkie[] = {"TalkieForCausalLM"};
/// add_talkie_factor() reads it.
inline constexpr std::string_view kTalkieFactor[] = {"lm_head_gain.w_g"};

inline constexpr std::array kRemoteLayersMappings = {
    GgufMapping{.architecture = "plm",
                .classes = kPlm,
                .layer = kPlmLayer,
                .ties_embeddings = true,
                .activation = "relu2",
                .read_own = read_plm,
                .add_own_keys = add_plm_keys},
    GgufMapping{.architecture = "plamo3",
                .classes = kPlamo3,
                .layer = kPlamo3Layer,
                .norms = Edit::add_one,
                .ties_embeddings = true,
                .activation = "swiglu",
                .activation_key = "hidden_activation",
                .layers = "layers.layers",
                .read_own = read_plamo3,
                .add_own_keys = add_plamo3_keys},
    GgufMapping{.architecture = "plamo2",
                .classes = kPlamo2,
                .layer = kPlamo2Layer,
                .norms = Edit::add_one,
                .ties_embeddings = true,
                .layers = "layers.layers",
                .read_own_sizes = read_plamo2_sizes,
                .read_own = read_plamo2,
                .add_own_keys = add_plamo2_keys},
    GgufMapping{.architecture = "deci",
                .classes = kDeci,
                .layer = kDeciLayer,
                .read_own_sizes = read_deci_sizes,
                .read_own = read_deci,
                .add_own_keys = add_deci_keys},
    GgufMapping{.architecture = "talkie",
                .classes = kTalkie,
                .layer = kTalkieLayer,
                .embeddings = "embed",
                .norm = {},
                .layers = "blocks",
                .rope_theta = 1e6,
                .numbers = kTalkieFactor,
                .read_own_sizes = read_talkie_sizes,
                .read_own = read_talkie},
};

}  // namespace snapkv::huggingface
