// SPDX-License-Identifier: MIT
// Rows of the table in gguf_mappings.cpp: Granite 4 and Nemotron-H, each with experts or without,
// Bamba and Falcon-H1.
#pragma once

#include <array>
#include <string_view>

#include "huggingface/gguf_mapping.h"
#include "huggingface/mamba2_config.h"

namespace snapkv::huggingface {

/// Attention, or a mixer of Mamba-2.
inline constexpr TensorRow kGraniteHybridLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd, Edit::permute_q, true},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd, Edit::permute_k, true},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd, Edit::none, true},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q, Edit::none, true},
    {"mamba.in_proj", "ssm_in", Size::scan_in, Size::embd, Edit::none, true},
    {"mamba.conv1d", "ssm_conv1d", Size::scan_xbc, Size::kernel, Edit::none, true},
    {"mamba.A_log", "ssm_a", Size::scan_head, Size::one, Edit::decay_rate, true, true},
    {"mamba.D", "ssm_d", Size::scan_head, Size::one, Edit::none, true, true},
    {"mamba.dt_bias", "ssm_dt.bias", Size::scan_head, Size::none, Edit::none, true, true},
    {"mamba.norm", "ssm_norm", Size::scan_group, Size::scan_group_values, Edit::none, true},
    {"mamba.out_proj", "ssm_out", Size::embd, Size::scan_values, Edit::none, true},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
};

/// The shared expert is all that there is.
inline constexpr TensorRow kGraniteHybridDense[] = {
    {"shared_mlp.input_linear", "ffn_gate", Size::ff_twice, Size::embd, Edit::first_half},
    {"shared_mlp.input_linear", "ffn_up", Size::ff_twice, Size::embd, Edit::second_half},
    {"shared_mlp.output_linear", "ffn_down", Size::embd, Size::ff},
};

inline constexpr TensorRow kGraniteHybridShared[] = {
    {"block_sparse_moe.router.layer", "ffn_gate_inp", Size::expert, Size::embd},
    {"shared_mlp.input_linear", "ffn_gate_shexp", Size::ff_shared_twice, Size::embd,
     Edit::first_half},
    {"shared_mlp.input_linear", "ffn_up_shexp", Size::ff_shared_twice, Size::embd,
     Edit::second_half},
    {"shared_mlp.output_linear", "ffn_down_shexp", Size::embd, Size::ff_shared},
};

inline constexpr TensorRow kGraniteHybridExperts[] = {
    {"block_sparse_moe.input_linear", "ffn_gate", Size::ff_twice, Size::embd, Edit::first_half},
    {"block_sparse_moe.input_linear", "ffn_up", Size::ff_twice, Size::embd, Edit::second_half},
    {"block_sparse_moe.output_linear", "ffn_down", Size::embd, Size::ff},
};

/// The same with a dense network, under other names.
inline constexpr TensorRow kBambaLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd, Edit::permute_q, true},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd, Edit::permute_k, true},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd, Edit::none, true},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q, Edit::none, true},
    {"mamba.in_proj", "ssm_in", Size::scan_in, Size::embd, Edit::none, true},
    {"mamba.conv1d", "ssm_conv1d", Size::scan_xbc, Size::kernel, Edit::none, true},
    {"mamba.A_log", "ssm_a", Size::scan_head, Size::one, Edit::decay_rate, true, true},
    {"mamba.D", "ssm_d", Size::scan_head, Size::one, Edit::none, true, true},
    {"mamba.dt_bias", "ssm_dt.bias", Size::scan_head, Size::none, Edit::none, true, true},
    {"mamba.norm", "ssm_norm", Size::scan_group, Size::scan_group_values, Edit::none, true},
    {"mamba.out_proj", "ssm_out", Size::embd, Size::scan_values, Edit::none, true},
    {"pre_ff_layernorm", "ffn_norm", Size::embd},
    {"feed_forward.gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"feed_forward.up_proj", "ffn_up", Size::ff, Size::embd},
    {"feed_forward.down_proj", "ffn_down", Size::embd, Size::ff},
};

/// Each layer has one of these parts.
inline constexpr TensorRow kNemotronHLayer[] = {
    {"norm", "attn_norm", Size::embd},
    {"mixer.q_proj", "attn_q", Size::q, Size::embd, Edit::none, true},
    {"mixer.k_proj", "attn_k", Size::kv, Size::embd, Edit::none, true},
    {"mixer.v_proj", "attn_v", Size::kv, Size::embd, Edit::none, true},
    {"mixer.o_proj", "attn_output", Size::embd, Size::q, Edit::none, true},
    {"mixer.in_proj", "ssm_in", Size::scan_in, Size::embd, Edit::none, true},
    {"mixer.conv1d", "ssm_conv1d", Size::scan_xbc, Size::kernel, Edit::none, true},
    {"mixer.A_log", "ssm_a", Size::scan_head, Size::one, Edit::decay_rate, true, true},
    {"mixer.D", "ssm_d", Size::scan_head, Size::one, Edit::none, true, true},
    {"mixer.dt_bias", "ssm_dt.bias", Size::scan_head, Size::none, Edit::none, true, true},
    {"mixer.norm", "ssm_norm", Size::scan_group, Size::scan_group_values, Edit::none, true},
    {"mixer.out_proj", "ssm_out", Size::embd, Size::scan_values, Edit::none, true},
};

inline constexpr TensorRow kNemotronHDense[] = {
    {"mixer.up_proj", "ffn_up", Size::ff, Size::embd, Edit::none, true},
    {"mixer.down_proj", "ffn_down", Size::embd, Size::ff, Edit::none, true},
};

inline constexpr TensorRow kNemotronHShared[] = {
    {"mixer.gate", "ffn_gate_inp", Size::expert, Size::embd, Edit::none, true},
    {"mixer.gate.e_score_correction_bias", "exp_probs_b.bias", Size::expert, Size::none, Edit::none,
     true, true},
    {"mixer.fc1_latent_proj", "ffn_latent_down", Size::latent, Size::embd, Edit::none, true},
    {"mixer.fc2_latent_proj", "ffn_latent_up", Size::embd, Size::latent, Edit::none, true},
    {"mixer.shared_experts.up_proj", "ffn_up_shexp", Size::ff_shared, Size::embd, Edit::none, true},
    {"mixer.shared_experts.down_proj", "ffn_down_shexp", Size::embd, Size::ff_shared, Edit::none,
     true},
};

inline constexpr TensorRow kNemotronHExperts[] = {
    {"up_proj", "ffn_up", Size::ff, Size::latent},
    {"down_proj", "ffn_down", Size::latent, Size::ff},
};

/// Attention and a mixer side by side.
inline constexpr TensorRow kFalconH1Layer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd, Edit::none, false, false,
     Factor::attention_in},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd, Edit::none, false, false, Factor::keys},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd, Edit::none, false, false,
     Factor::attention_in},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q, Edit::none, false, false,
     Factor::attention_out},
    {"mamba.in_proj", "ssm_in", Size::scan_in, Size::embd, Edit::none, false, false,
     Factor::mixer_in},
    {"mamba.conv1d", "ssm_conv1d", Size::scan_xbc, Size::kernel},
    {"mamba.A_log", "ssm_a", Size::scan_head, Size::one, Edit::decay_rate, false, true},
    {"mamba.D", "ssm_d", Size::scan_head, Size::one, Edit::none, false, true},
    {"mamba.dt_bias", "ssm_dt.bias", Size::scan_head, Size::none, Edit::none, false, true},
    {"mamba.norm", "ssm_norm", Size::scan_group, Size::scan_group_values, Edit::none, true},
    {"mamba.out_proj", "ssm_out", Size::embd, Size::scan_values, Edit::none, false, false,
     Factor::mixer_out},
    {"pre_ff_layernorm.weight", "ffn_norm", Size::embd, Size::none, Edit::none, false, true},
    {"feed_forward.gate_proj", "ffn_gate", Size::ff, Size::embd, Edit::none, false, false,
     Factor::gate},
    {"feed_forward.up_proj", "ffn_up", Size::ff, Size::embd},
    {"feed_forward.down_proj", "ffn_down", Size::embd, Size::ff, Edit::none, false, false,
     Factor::down},
};

inline constexpr std::string_view kFalconH1[] = {"FalconH1ForCausalLM"};
inline constexpr std::string_view kBamba[] = {"BambaForCausalLM"};
inline constexpr std::string_view kGraniteHybrid[] = {"GraniteMoeHybridForCausalLM"};
inline constexpr std::string_view kNemotronH[] = {"NemotronHForCausalLM"};

/// has_layers_of() (mamba2_config.h) tells apart those of one class.
inline constexpr std::array kMamba2Mappings = {
    GgufMapping{.architecture = "granitehybrid",
                .classes = kGraniteHybrid,
                .layer = kGraniteHybridLayer,
                .ffn = kGraniteHybridDense},
    GgufMapping{.architecture = "granitehybrid",
                .classes = kGraniteHybrid,
                .layer = kGraniteHybridLayer,
                .ffn = kGraniteHybridShared,
                .joined_experts = kGraniteHybridExperts},
    GgufMapping{.architecture = "granitehybrid",
                .classes = kBamba,
                .layer = kBambaLayer,
                .norm = "model.final_layernorm",
                .read_own = read_bamba},
    GgufMapping{.architecture = "falcon-h1",
                .classes = kFalconH1,
                .layer = kFalconH1Layer,
                .norm = "model.final_layernorm"},
    GgufMapping{.architecture = "nemotron_h",
                .classes = kNemotronH,
                .layer = kNemotronHLayer,
                .ffn = kNemotronHDense,
                .root = "backbone",
                .embeddings = "embeddings",
                .norm = "backbone.norm_f",
                .activation = "relu2",
                .activation_key = "mlp_hidden_act"},
    GgufMapping{.architecture = "nemotron_h_moe",
                .classes = kNemotronH,
                .layer = kNemotronHLayer,
                .ffn = kNemotronHShared,
                .experts = kNemotronHExperts,
                .expert_prefix = "mixer.experts.",
                .root = "backbone",
                .embeddings = "embeddings",
                .norm = "backbone.norm_f",
                .activation = "relu2",
                .activation_key = "mlp_hidden_act"},
};

}  // namespace snapkv::huggingface
