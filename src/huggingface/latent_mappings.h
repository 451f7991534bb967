// SPDX-License-Identifier: MIT
// Rows of the table in gguf_mappings.cpp: latent attention, and what may stand in its place.
#pragma once

#include "huggingface/gguf_mapping.h"

namespace snapkv::huggingface {

/// Neighbouring values are rotated in the folder too.
inline constexpr TensorRow kLatentAttention[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::latent_q, Size::embd, Edit::none, true},
    {"self_attn.q_a_proj", "attn_q_a", Size::latent_q_rank, Size::embd, Edit::none, true},
    {"self_attn.q_a_layernorm", "attn_q_a_norm", Size::latent_q_rank, Size::none, Edit::none, true},
    {"self_attn.q_b_proj", "attn_q_b", Size::latent_q, Size::latent_q_rank, Edit::none, true},
    {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa", Size::latent_row, Size::embd},
    {"self_attn.kv_a_layernorm", "attn_kv_a_norm", Size::latent_rank},
    {"self_attn.kv_b_proj", "attn_k_b", Size::latent_heads, Size::latent_rank, Edit::head_keys},
    {"self_attn.kv_b_proj", "attn_v_b", Size::latent_heads, Size::latent_rank, Edit::head_values},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::mixer_values},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
};

/// The same with an indexer, which some layers may lack.
inline constexpr TensorRow kIndexedAttention[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_a_proj", "attn_q_a", Size::latent_q_rank, Size::embd},
    {"self_attn.q_a_layernorm", "attn_q_a_norm", Size::latent_q_rank},
    {"self_attn.q_b_proj", "attn_q_b", Size::latent_q, Size::latent_q_rank},
    {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa", Size::latent_row, Size::embd},
    {"self_attn.kv_a_layernorm", "attn_kv_a_norm", Size::latent_rank},
    {"self_attn.kv_b_proj", "attn_k_b", Size::latent_heads, Size::latent_rank, Edit::head_keys},
    {"self_attn.kv_b_proj", "attn_v_b", Size::latent_heads, Size::latent_rank, Edit::head_values},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::mixer_values},
    {"self_attn.indexer.wq_b", "indexer.attn_q_b", Size::index_q, Size::latent_q_rank, Edit::none,
     true},
    {"self_attn.indexer.wk", "indexer.attn_k", Size::index_key, Size::embd, Edit::none, true},
    {"self_attn.indexer.k_norm", "indexer.k_norm", Size::index_key, Size::none, Edit::none, true},
    {"self_attn.indexer.k_norm.bias", "indexer.k_norm.bias", Size::index_key, Size::none,
     Edit::none, true, true},
    {"self_attn.indexer.weights_proj", "indexer.proj", Size::index_head, Size::embd, Edit::none,
     true},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
};

/// Of models without experts, of which GGUF has keys and values of all heads in one tensor.
inline constexpr TensorRow kDenseLatentLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::latent_q, Size::embd, Edit::none, true},
    {"self_attn.q_a_proj", "attn_q_a", Size::latent_q_rank, Size::embd, Edit::none, true},
    {"self_attn.q_a_layernorm", "attn_q_a_norm", Size::latent_q_rank, Size::none, Edit::none, true},
    {"self_attn.q_b_proj", "attn_q_b", Size::latent_q, Size::latent_q_rank, Edit::none, true},
    {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa", Size::latent_row, Size::embd},
    {"self_attn.kv_a_layernorm", "attn_kv_a_norm", Size::latent_rank},
    {"self_attn.kv_b_proj", "attn_kv_b", Size::latent_heads, Size::latent_rank},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::mixer_values},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

/// Linear attention, or latent attention.
inline constexpr TensorRow kBailingHybridHeads[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"attention.q_proj", "attn_q", Size::mixer_q, Size::embd, Edit::none, true},
    {"attention.q_a_proj", "attn_q_a", Size::latent_q_rank, Size::embd, Edit::none, true},
    {"attention.q_a_layernorm", "attn_q_a_norm", Size::latent_q_rank, Size::none, Edit::none, true},
    {"attention.q_b_proj", "attn_q_b", Size::latent_q, Size::latent_q_rank, Edit::none, true},
    {"attention.kv_a_proj_with_mqa", "attn_kv_a_mqa", Size::latent_row, Size::embd, Edit::none,
     true},
    {"attention.kv_a_layernorm", "attn_kv_a_norm", Size::latent_rank, Size::none, Edit::none, true},
    {"attention.kv_b_proj", "attn_k_b", Size::latent_heads, Size::latent_rank, Edit::head_keys,
     true},
    {"attention.kv_b_proj", "attn_v_b", Size::latent_heads, Size::latent_rank, Edit::head_values,
     true},
    {"attention.g_proj", "attn_gate", Size::latent_gates, Size::embd},
    {"attention.g_proj", "ssm_g_a", Size::linear_gates, Size::embd},
    {"attention.dense", "attn_output", Size::embd, Size::mixer_values},
    {"attention.k_proj", "attn_k", Size::linear_values, Size::embd, Edit::none, true},
    {"attention.v_proj", "attn_v", Size::linear_values, Size::embd, Edit::none, true},
    {"attention.q_conv1d", "ssm_conv1d_q", Size::linear_values, Size::kernel, Edit::taps, true},
    {"attention.k_conv1d", "ssm_conv1d_k", Size::linear_values, Size::kernel, Edit::taps, true},
    {"attention.v_conv1d", "ssm_conv1d_v", Size::linear_values, Size::kernel, Edit::taps, true},
    {"attention.f_proj", "ssm_f_a", Size::linear_values, Size::embd, Edit::none, true},
    {"attention.b_proj", "ssm_beta", Size::linear_head, Size::embd, Edit::none, true},
    {"attention.A_log", "ssm_a", Size::linear_head, Size::one, Edit::growth_rate, true, true},
    {"attention.dt_bias", "ssm_dt.bias", Size::linear_values, Size::none, Edit::none, true, true},
    {"attention.o_norm", "ssm_norm", Size::linear_value, Size::none, Edit::none, true},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
};

}  // namespace snapkv::huggingface
