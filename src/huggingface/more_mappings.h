// SPDX-License-Identifier: MIT
// Rows of the table in gguf_mappings.cpp: OLMo 1, Jais 2, Mellum 2, Gemma 3n, Gemma 4, GLM 4, Kimi
// Linear, Llama 4, Seed-OSS, EXAONE 4, ERNIE 4.5, Hunyuan and the text models of Qwen 2 VL to Qwen
// 3 VL.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "huggingface/gguf_mapping.h"

namespace snapkv::huggingface {

/// Neighbouring values are rotated in the folder too.
inline constexpr TensorRow kErnieLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

/// Here too.
inline constexpr TensorRow kGlm4Layer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"post_self_attn_layernorm", "post_attention_norm", Size::embd},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.gate_up_proj", "ffn_up", Size::ff_twice, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
    {"post_mlp_layernorm", "post_ffw_norm", Size::embd},
};

/// Layers that read rows of others have no keys and values, and values may be made of keys.
inline constexpr TensorRow kGemma4Layer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd, Edit::none, true},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd, Edit::none, true},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"self_attn.q_norm", "attn_q_norm", Size::head_dim},
    {"self_attn.k_norm", "attn_k_norm", Size::head_dim, Size::none, Edit::none, true},
    {"post_attention_layernorm", "post_attention_norm", Size::embd},
    {"pre_feedforward_layernorm", "ffn_norm", Size::embd},
    {"post_feedforward_layernorm", "post_ffw_norm", Size::embd},
    {"mlp.gate_proj", "ffn_gate", Size::ff_dense, Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff_dense, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff_dense},
    {"layer_scalar", "layer_output_scale.weight", Size::one, Size::none, Edit::none, true, true},
    {"per_layer_input_gate", "inp_gate", Size::layer_input, Size::embd, Edit::none, true},
    {"per_layer_projection", "proj", Size::embd, Size::layer_input, Edit::none, true},
    {"post_per_layer_input_norm", "post_norm", Size::embd, Size::none, Edit::none, true},
    {"post_feedforward_layernorm_1", "post_ffw_norm_1", Size::embd, Size::none, Edit::none, true},
    {"pre_feedforward_layernorm_2", "pre_ffw_norm_2", Size::embd, Size::none, Edit::none, true},
    {"post_feedforward_layernorm_2", "post_ffw_norm_2", Size::embd, Size::none, Edit::none, true},
    {"router.proj", "ffn_gate_inp", Size::expert, Size::embd, Edit::none, true},
    {"router.scale", "ffn_gate_inp.scale", Size::embd, Size::none, Edit::none, true, true},
    {"router.per_expert_scale", "ffn_down_exps.scale", Size::expert, Size::none, Edit::none, true,
     true},
};

inline constexpr TensorRow kGemma3nLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd, Edit::none, true},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd, Edit::none, true},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"self_attn.q_norm", "attn_q_norm", Size::head_dim},
    {"self_attn.k_norm", "attn_k_norm", Size::head_dim, Size::none, Edit::none, true},
    {"post_attention_layernorm", "post_attention_norm", Size::embd},
    {"pre_feedforward_layernorm", "ffn_norm", Size::embd},
    {"post_feedforward_layernorm", "post_ffw_norm", Size::embd},
    {"mlp.gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
    {"per_layer_input_gate", "inp_gate", Size::layer_input, Size::embd},
    {"per_layer_projection", "proj", Size::embd, Size::layer_input},
    {"post_per_layer_input_norm", "post_norm", Size::embd},
    {"altup.modality_router", "altup_router", Size::streams, Size::embd},
    {"altup.router_norm", "altup_router_norm", Size::embd},
    {"altup.prediction_coefs", "altup_predict_coef", Size::streams_squared, Size::streams},
    {"altup.correction_coefs", "altup_correct_coef", Size::streams, Size::streams},
    {"altup.correct_output_scale", "altup_correct_scale.weight", Size::embd, Size::none, Edit::none,
     false, true},
    {"laurel.linear_left", "laurel_l", Size::low_rank, Size::embd},
    {"laurel.linear_right", "laurel_r", Size::embd, Size::low_rank},
    {"laurel.post_laurel_norm", "laurel_post_norm", Size::embd},
};

inline constexpr TensorRow kGemma4Experts[] = {
    {"experts.gate_up_proj", "ffn_gate", Size::ff_twice, Size::embd, Edit::first_half, false, true},
    {"experts.gate_up_proj", "ffn_up", Size::ff_twice, Size::embd, Edit::second_half, false, true},
    {"experts.down_proj", "ffn_down", Size::embd, Size::ff, Edit::none, false, true},
};

inline constexpr std::string_view kGemma3n[] = {"Gemma3nForCausalLM",
                                                "Gemma3nForConditionalGeneration"};
inline constexpr std::string_view kGemma4[] = {"Gemma4ForCausalLM",
                                               "Gemma4ForConditionalGeneration"};

inline constexpr TensorRow kGlm4MoeLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"self_attn.q_norm", "attn_q_norm", Size::head_dim, Size::none, Edit::none, true},
    {"self_attn.k_norm", "attn_k_norm", Size::head_dim, Size::none, Edit::none, true},
    {"post_attention_layernorm", "post_attention_norm", Size::embd},
    {"mlp.gate_proj", "ffn_gate", Size::ff_dense, Size::embd, Edit::none, true},
    {"mlp.up_proj", "ffn_up", Size::ff_dense, Size::embd, Edit::none, true},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff_dense, Edit::none, true},
    {"mlp.gate", "ffn_gate_inp", Size::expert, Size::embd, Edit::none, true},
    {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias", Size::expert, Size::none, Edit::none,
     true, true},
    {"mlp.shared_experts.gate_proj", "ffn_gate_shexp", Size::ff_shared, Size::embd, Edit::none,
     true},
    {"mlp.shared_experts.up_proj", "ffn_up_shexp", Size::ff_shared, Size::embd, Edit::none, true},
    {"mlp.shared_experts.down_proj", "ffn_down_shexp", Size::embd, Size::ff_shared, Edit::none,
     true},
};

inline constexpr TensorRow kGlm4MoeExperts[] = {
    {"gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"up_proj", "ffn_up", Size::ff, Size::embd},
    {"down_proj", "ffn_down", Size::embd, Size::ff},
};

/// Linear attention, or latent attention; experts, or a dense network, which folders of
/// transformers have under the name of experts.
inline constexpr TensorRow kKimiLinearLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::mixer_q, Size::embd, Edit::none, true},
    {"self_attn.q_a_proj", "attn_q_a", Size::latent_q_rank, Size::embd, Edit::none, true},
    {"self_attn.q_a_layernorm", "attn_q_a_norm", Size::latent_q_rank, Size::none, Edit::none, true},
    {"self_attn.q_b_proj", "attn_q_b", Size::latent_q, Size::latent_q_rank, Edit::none, true},
    {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa", Size::latent_row, Size::embd, Edit::none,
     true},
    {"self_attn.kv_a_layernorm", "attn_kv_a_norm", Size::latent_rank, Size::none, Edit::none, true},
    {"self_attn.kv_b_proj", "attn_k_b", Size::latent_heads, Size::latent_rank, Edit::head_keys,
     true},
    {"self_attn.kv_b_proj", "attn_v_b", Size::latent_heads, Size::latent_rank, Edit::head_values,
     true},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::mixer_values},
    {"self_attn.k_proj", "attn_k", Size::linear_values, Size::embd, Edit::none, true},
    {"self_attn.v_proj", "attn_v", Size::linear_values, Size::embd, Edit::none, true},
    {"self_attn.q_conv1d", "ssm_conv1d_q", Size::linear_values, Size::kernel, Edit::taps, true},
    {"self_attn.k_conv1d", "ssm_conv1d_k", Size::linear_values, Size::kernel, Edit::taps, true},
    {"self_attn.v_conv1d", "ssm_conv1d_v", Size::linear_values, Size::kernel, Edit::taps, true},
    {"self_attn.f_a_proj", "ssm_f_a", Size::linear_value, Size::embd, Edit::none, true},
    {"self_attn.f_b_proj", "ssm_f_b", Size::linear_values, Size::linear_value, Edit::none, true},
    {"self_attn.b_proj", "ssm_beta", Size::linear_head, Size::embd, Edit::none, true},
    {"self_attn.A_log", "ssm_a", Size::linear_head, Size::one, Edit::decay_rate, true, true},
    {"self_attn.dt_bias", "ssm_dt.bias", Size::linear_values, Size::none, Edit::none, true, true},
    {"self_attn.g_a_proj", "ssm_g_a", Size::linear_value, Size::embd, Edit::none, true},
    {"self_attn.g_b_proj", "ssm_g_b", Size::linear_values, Size::linear_value, Edit::none, true},
    {"self_attn.o_norm", "ssm_norm", Size::linear_value, Size::none, Edit::none, true},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.gate_proj", "ffn_gate", Size::ff_dense, Size::embd, Edit::none, true},
    {"mlp.up_proj", "ffn_up", Size::ff_dense, Size::embd, Edit::none, true},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff_dense, Edit::none, true},
    {"block_sparse_moe.gate_proj", "ffn_gate", Size::ff_dense, Size::embd, Edit::none, true},
    {"block_sparse_moe.up_proj", "ffn_up", Size::ff_dense, Size::embd, Edit::none, true},
    {"block_sparse_moe.down_proj", "ffn_down", Size::embd, Size::ff_dense, Edit::none, true},
    {"block_sparse_moe.gate", "ffn_gate_inp", Size::expert, Size::embd, Edit::none, true},
    {"block_sparse_moe.gate.e_score_correction_bias", "exp_probs_b.bias", Size::expert, Size::none,
     Edit::none, true, true},
    {"block_sparse_moe.shared_experts.gate_proj", "ffn_gate_shexp", Size::ff_shared, Size::embd,
     Edit::none, true},
    {"block_sparse_moe.shared_experts.up_proj", "ffn_up_shexp", Size::ff_shared, Size::embd,
     Edit::none, true},
    {"block_sparse_moe.shared_experts.down_proj", "ffn_down_shexp", Size::embd, Size::ff_shared,
     Edit::none, true},
};

/// Neighbouring values are rotated. Some layers have experts, the others a dense network.
inline constexpr TensorRow kLlama4Layer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"feed_forward.gate_proj", "ffn_gate", Size::ff_dense, Size::embd, Edit::none, true},
    {"feed_forward.up_proj", "ffn_up", Size::ff_dense, Size::embd, Edit::none, true},
    {"feed_forward.down_proj", "ffn_down", Size::embd, Size::ff_dense, Edit::none, true},
    {"feed_forward.router", "ffn_gate_inp", Size::expert, Size::embd, Edit::none, true},
    {"feed_forward.shared_expert.gate_proj", "ffn_gate_shexp", Size::ff_shared, Size::embd,
     Edit::none, true},
    {"feed_forward.shared_expert.up_proj", "ffn_up_shexp", Size::ff_shared, Size::embd, Edit::none,
     true},
    {"feed_forward.shared_expert.down_proj", "ffn_down_shexp", Size::embd, Size::ff_shared,
     Edit::none, true},
};

inline constexpr TensorRow kLlama4Experts[] = {
    {"feed_forward.experts.gate_up_proj", "ffn_gate_exps.weight", Size::embd, Size::ff_twice,
     Edit::gate_of_halves, false, true},
    {"feed_forward.experts.gate_up_proj", "ffn_up_exps.weight", Size::embd, Size::ff_twice,
     Edit::up_of_halves, false, true},
    {"feed_forward.experts.down_proj", "ffn_down_exps.weight", Size::ff, Size::embd,
     Edit::transposed, false, true},
};

inline constexpr TensorRow kSeedOssLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"post_attention_layernorm", "post_attention_norm", Size::embd},
    {"mlp.gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

inline constexpr TensorRow kExaone4Layer[] = {
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"self_attn.q_norm", "attn_q_norm", Size::head_dim},
    {"self_attn.k_norm", "attn_k_norm", Size::head_dim},
    {"post_attention_layernorm", "post_attention_norm", Size::embd},
    {"mlp.gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
    {"post_feedforward_layernorm", "post_ffw_norm", Size::embd},
};

inline constexpr TensorRow kHunyuanLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"self_attn.query_layernorm", "attn_q_norm", Size::head_dim},
    {"self_attn.key_layernorm", "attn_k_norm", Size::head_dim},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

/// Norms have no weights. GGUF's files rotate neighbouring values.
inline constexpr TensorRow kOlmoLayer[] = {
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd, Edit::permute_q},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd, Edit::permute_k},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"mlp.gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

inline constexpr TensorRow kJais2Layer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

inline constexpr std::string_view kOlmo[] = {"OlmoForCausalLM"};
inline constexpr std::string_view kJais2[] = {"Jais2ForCausalLM"};
inline constexpr std::string_view kMellum[] = {"MellumForCausalLM"};
inline constexpr std::string_view kGlm4[] = {"Glm4ForCausalLM", "Glm4vForConditionalGeneration",
                                             "Glm46VForConditionalGeneration"};
inline constexpr std::string_view kGlm4Moe[] = {"Glm4MoeForCausalLM",
                                                "Glm4vMoeForConditionalGeneration"};
inline constexpr std::string_view kSolarOpen[] = {"SolarOpenForCausalLM"};
inline constexpr std::string_view kKimiLinear[] = {"KimiLinearForCausalLM"};
inline constexpr std::string_view kLlama4[] = {"Llama4ForCausalLM",
                                               "Llama4ForConditionalGeneration"};
inline constexpr std::string_view kSeedOss[] = {"SeedOssForCausalLM"};
inline constexpr std::string_view kExaone4[] = {"Exaone4ForCausalLM"};
inline constexpr std::string_view kErnie[] = {"Ernie4_5ForCausalLM"};
inline constexpr std::string_view kHunyuan[] = {"HunYuanDenseV1ForCausalLM"};
inline constexpr std::string_view kQwen2Vl[] = {"Qwen2VLForConditionalGeneration",
                                                "Qwen2_5_VLForConditionalGeneration"};
inline constexpr std::string_view kQwen3Vl[] = {"Qwen3VLForConditionalGeneration"};

/// `qwen2`, `qwen3` and `qwen3moe`: the layers of those, and `experts` those of the last;
/// `mixtral_experts`: Mixtral's.
constexpr auto more_mappings(std::span<const TensorRow> qwen2, std::span<const TensorRow> qwen3,
                             std::span<const TensorRow> qwen3moe,
                             std::span<const TensorRow> experts,
                             std::span<const TensorRow> joined_experts,
                             std::span<const TensorRow> mixtral_experts) {
  return std::array{
      GgufMapping{.architecture = "olmo",
                  .classes = kOlmo,
                  .layer = kOlmoLayer,
                  .norm = "",
                  .layer_epsilon = true},
      GgufMapping{.architecture = "jais2",
                  .classes = kJais2,
                  .layer = kJais2Layer,
                  .layer_norms = true,
                  .layer_epsilon = true,
                  .activation = "relu2"},
      GgufMapping{.architecture = "mellum",
                  .classes = kMellum,
                  .layer = qwen3moe,
                  .experts = experts,
                  .joined_experts = joined_experts,
                  .expert_prefix = "mlp.experts."},
      GgufMapping{.architecture = "gemma3n",
                  .classes = kGemma3n,
                  .layer = kGemma3nLayer,
                  .ties_embeddings = true,
                  .activation = "gelu_pytorch_tanh",
                  .activation_key = "hidden_activation"},
      GgufMapping{.architecture = "gemma4",
                  .classes = kGemma4,
                  .layer = kGemma4Layer,
                  .joined_experts = kGemma4Experts,
                  .ties_embeddings = true,
                  .activation = "gelu_pytorch_tanh",
                  .activation_key = "hidden_activation"},
      GgufMapping{.architecture = "glm4", .classes = kGlm4, .layer = kGlm4Layer},
      GgufMapping{.architecture = "glm4moe",
                  .classes = kGlm4Moe,
                  .layer = kGlm4MoeLayer,
                  .experts = kGlm4MoeExperts,
                  .expert_prefix = "mlp.experts."},
      GgufMapping{.architecture = "glm4moe",
                  .classes = kSolarOpen,
                  .layer = kGlm4MoeLayer,
                  .experts = kGlm4MoeExperts,
                  .expert_prefix = "mlp.experts.",
                  .rope_theta = 1e6},
      GgufMapping{.architecture = "kimi-linear",
                  .classes = kKimiLinear,
                  .layer = kKimiLinearLayer,
                  .experts = mixtral_experts,
                  .expert_prefix = "block_sparse_moe.experts."},
      GgufMapping{.architecture = "llama4",
                  .classes = kLlama4,
                  .layer = kLlama4Layer,
                  .joined_experts = kLlama4Experts},
      GgufMapping{.architecture = "seed_oss", .classes = kSeedOss, .layer = kSeedOssLayer},
      GgufMapping{.architecture = "exaone4", .classes = kExaone4, .layer = kExaone4Layer},
      GgufMapping{.architecture = "ernie4_5",
                  .classes = kErnie,
                  .layer = kErnieLayer,
                  .ties_embeddings = true},
      GgufMapping{.architecture = "hunyuan-dense", .classes = kHunyuan, .layer = kHunyuanLayer},
      GgufMapping{.architecture = "qwen2vl", .classes = kQwen2Vl, .layer = qwen2},
      GgufMapping{.architecture = "qwen3vl", .classes = kQwen3Vl, .layer = qwen3},
  };
}

}  // namespace snapkv::huggingface
