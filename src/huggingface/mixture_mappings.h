// SPDX-License-Identifier: MIT
// Rows of the table in gguf_mappings.cpp: families, most of them with experts, whose config.json is
// read by functions of their own (latent_config.h, mixture_config.h).
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "huggingface/bailing_hybrid_config.h"
#include "huggingface/chameleon_config.h"
#include "huggingface/dbrx_config.h"
#include "huggingface/gguf_mapping.h"
#include "huggingface/latent_config.h"
#include "huggingface/latent_mappings.h"
#include "huggingface/mixture_config.h"
#include "huggingface/step_config.h"

namespace snapkv::huggingface {

/// Of a layer with experts, or a dense network.
inline constexpr TensorRow kDeepseekFfn[] = {
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

inline constexpr TensorRow kErnieMoeFfn[] = {
    {"mlp.gate_proj", "ffn_gate", Size::ff_dense, Size::embd, Edit::none, true},
    {"mlp.up_proj", "ffn_up", Size::ff_dense, Size::embd, Edit::none, true},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff_dense, Edit::none, true},
    {"mlp.gate", "ffn_gate_inp", Size::expert, Size::embd, Edit::none, true},
    {"mlp.moe_statics.e_score_correction_bias", "exp_probs_b.bias", Size::expert, Size::none,
     Edit::none, true, true},
    {"mlp.shared_experts.gate_proj", "ffn_gate_shexp", Size::ff_shared, Size::embd, Edit::none,
     true},
    {"mlp.shared_experts.up_proj", "ffn_up_shexp", Size::ff_shared, Size::embd, Edit::none, true},
    {"mlp.shared_experts.down_proj", "ffn_down_shexp", Size::embd, Size::ff_shared, Edit::none,
     true},
};

inline constexpr TensorRow kExaoneMoeFfn[] = {
    {"mlp.gate_proj", "ffn_gate", Size::ff_dense, Size::embd, Edit::none, true},
    {"mlp.up_proj", "ffn_up", Size::ff_dense, Size::embd, Edit::none, true},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff_dense, Edit::none, true},
    {"mlp.gate", "ffn_gate_inp", Size::expert, Size::embd, Edit::none, true},
    {"mlp.e_score_correction_bias", "exp_probs_b.bias", Size::expert, Size::none, Edit::none, true,
     true},
    {"mlp.shared_experts.gate_proj", "ffn_gate_shexp", Size::ff_shared, Size::embd, Edit::none,
     true},
    {"mlp.shared_experts.up_proj", "ffn_up_shexp", Size::ff_shared, Size::embd, Edit::none, true},
    {"mlp.shared_experts.down_proj", "ffn_down_shexp", Size::embd, Size::ff_shared, Edit::none,
     true},
};

inline constexpr TensorRow kHy3Ffn[] = {
    {"mlp.gate_proj", "ffn_gate", Size::ff_dense, Size::embd, Edit::none, true},
    {"mlp.up_proj", "ffn_up", Size::ff_dense, Size::embd, Edit::none, true},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff_dense, Edit::none, true},
    {"mlp.router.gate", "ffn_gate_inp", Size::expert, Size::embd, Edit::none, true},
    {"mlp.expert_bias", "exp_probs_b", Size::expert, Size::none, Edit::none, true, true},
    {"mlp.shared_mlp.gate_proj", "ffn_gate_shexp", Size::ff_shared, Size::embd, Edit::none, true},
    {"mlp.shared_mlp.up_proj", "ffn_up_shexp", Size::ff_shared, Size::embd, Edit::none, true},
    {"mlp.shared_mlp.down_proj", "ffn_down_shexp", Size::embd, Size::ff_shared, Edit::none, true},
};

inline constexpr TensorRow kAfmoeLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.gate_proj", "attn_gate", Size::q, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"self_attn.q_norm", "attn_q_norm", Size::head_dim},
    {"self_attn.k_norm", "attn_k_norm", Size::head_dim},
    {"post_attention_layernorm", "post_attention_norm", Size::embd},
    {"pre_mlp_layernorm", "ffn_norm", Size::embd},
    {"post_mlp_layernorm", "post_ffw_norm", Size::embd},
    {"mlp.gate_proj", "ffn_gate", Size::ff_dense, Size::embd, Edit::none, true},
    {"mlp.up_proj", "ffn_up", Size::ff_dense, Size::embd, Edit::none, true},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff_dense, Edit::none, true},
    {"mlp.router.gate", "ffn_gate_inp", Size::expert, Size::embd, Edit::none, true},
    {"mlp.expert_bias", "exp_probs_b.bias", Size::expert, Size::none, Edit::none, true, true},
    {"mlp.shared_experts.gate_proj", "ffn_gate_shexp", Size::ff_shared, Size::embd, Edit::none,
     true},
    {"mlp.shared_experts.up_proj", "ffn_up_shexp", Size::ff_shared, Size::embd, Edit::none, true},
    {"mlp.shared_experts.down_proj", "ffn_down_shexp", Size::embd, Size::ff_shared, Edit::none,
     true},
};

/// GLM 4.5's, published under other names.
inline constexpr TensorRow kSarvamHeads[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"attention.query_key_value", "attn_qkv", Size::qkv, Size::embd},
    {"attention.dense", "attn_output", Size::embd, Size::q},
    {"attention.query_layernorm", "attn_q_norm", Size::head_dim, Size::none, Edit::none, true},
    {"attention.key_layernorm", "attn_k_norm", Size::head_dim, Size::none, Edit::none, true},
    {"post_attention_layernorm", "post_attention_norm", Size::embd},
};

/// Of a layer with experts, or a dense network, under the names of Ling and Sarvam.
inline constexpr TensorRow kBailingFfn[] = {
    {"mlp.gate_proj", "ffn_gate", Size::ff_dense, Size::embd, Edit::none, true},
    {"mlp.up_proj", "ffn_up", Size::ff_dense, Size::embd, Edit::none, true},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff_dense, Edit::none, true},
    {"mlp.gate", "ffn_gate_inp", Size::expert, Size::embd, Edit::none, true},
    {"mlp.gate.expert_bias", "exp_probs_b.bias", Size::expert, Size::none, Edit::none, true, true},
    {"mlp.shared_experts.gate_proj", "ffn_gate_shexp", Size::ff_shared, Size::embd, Edit::none,
     true},
    {"mlp.shared_experts.up_proj", "ffn_up_shexp", Size::ff_shared, Size::embd, Edit::none, true},
    {"mlp.shared_experts.down_proj", "ffn_down_shexp", Size::embd, Size::ff_shared, Edit::none,
     true},
};

/// With a norm for each head of queries and keys.
inline constexpr TensorRow kNormedHeads[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"self_attn.q_norm", "attn_q_norm", Size::head_dim},
    {"self_attn.k_norm", "attn_k_norm", Size::head_dim},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
};

/// Without. Neighbouring values are rotated in the folder too.
inline constexpr TensorRow kPlainHeads[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
};

/// Attention and the network read the same norm. Rotation as above.
inline constexpr TensorRow kCohere2MoeHeads[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
};

inline constexpr TensorRow kMinimaxLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"self_attn.q_norm", "attn_q_norm", Size::q},
    {"self_attn.k_norm", "attn_k_norm", Size::kv},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"block_sparse_moe.gate", "ffn_gate_inp", Size::expert, Size::embd},
    {"block_sparse_moe.e_score_correction_bias", "exp_probs_b.bias", Size::expert, Size::none,
     Edit::none, false, true},
};

inline constexpr TensorRow kHunyuanMoeLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"self_attn.query_layernorm", "attn_q_norm", Size::head_dim},
    {"self_attn.key_layernorm", "attn_k_norm", Size::head_dim},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.gate.wg", "ffn_gate_inp", Size::expert, Size::embd},
    {"mlp.shared_mlp.gate_proj", "ffn_gate_shexp", Size::ff_shared, Size::embd},
    {"mlp.shared_mlp.up_proj", "ffn_up_shexp", Size::ff_shared, Size::embd},
    {"mlp.shared_mlp.down_proj", "ffn_down_shexp", Size::embd, Size::ff_shared},
};

inline constexpr TensorRow kGraniteSwaHeads[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd, Edit::permute_q},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd, Edit::permute_k},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"self_attn.sinks", "attn_sinks.weight", Size::head, Size::none, Edit::none, false, true},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
};

inline constexpr TensorRow kGraniteSwaDense[] = {
    {"mlp.gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

/// GGUF has gate and up of the shared expert in one matrix, too.
inline constexpr TensorRow kGraniteSwaMoe[] = {
    {"block_sparse_moe.router", "ffn_gate_inp", Size::expert, Size::embd},
    {"shared_mlp.input_linear", "ffn_up_shexp", Size::ff_shared_twice, Size::embd, Edit::none,
     true},
    {"shared_mlp.output_linear", "ffn_down_shexp", Size::embd, Size::ff_shared, Edit::none, true},
};

inline constexpr TensorRow kGraniteSwaExperts[] = {
    {"block_sparse_moe.experts.gate_up_proj", "ffn_gate", Size::ff_twice, Size::embd,
     Edit::first_half, false, true},
    {"block_sparse_moe.experts.gate_up_proj", "ffn_up", Size::ff_twice, Size::embd,
     Edit::second_half, false, true},
    {"block_sparse_moe.experts.down_proj", "ffn_down", Size::embd, Size::ff, Edit::none, false,
     true},
};

inline constexpr TensorRow kMimo2Heads[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::values, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::attended},
    {"self_attn.attention_sink_bias", "attn_sinks.weight", Size::head, Size::none, Edit::none, true,
     true},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
};

inline constexpr TensorRow kLagunaLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.g_proj", "attn_gate", Size::out_gates, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"self_attn.q_norm", "attn_q_norm", Size::head_dim},
    {"self_attn.k_norm", "attn_k_norm", Size::head_dim},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.gate_proj", "ffn_gate", Size::ff_dense, Size::embd, Edit::none, true},
    {"mlp.up_proj", "ffn_up", Size::ff_dense, Size::embd, Edit::none, true},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff_dense, Edit::none, true},
    {"mlp.gate", "ffn_gate_inp", Size::expert, Size::embd, Edit::none, true},
    {"mlp.experts.e_score_correction_bias", "exp_probs_b.bias", Size::expert, Size::none,
     Edit::none, true, true},
    {"mlp.shared_expert.gate_proj", "ffn_gate_shexp", Size::ff_shared, Size::embd, Edit::none,
     true},
    {"mlp.shared_expert.up_proj", "ffn_up_shexp", Size::ff_shared, Size::embd, Edit::none, true},
    {"mlp.shared_expert.down_proj", "ffn_down_shexp", Size::embd, Size::ff_shared, Edit::none,
     true},
};

/// Rows of heads, and their norms, stay in the folder's order.
inline constexpr TensorRow kChameleonLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"self_attn.q_norm.weight", "attn_q_norm.weight", Size::head, Size::head_dim, Edit::none, false,
     true},
    {"self_attn.q_norm.bias", "attn_q_norm.bias", Size::head, Size::head_dim, Edit::none, true,
     true},
    {"self_attn.k_norm.weight", "attn_k_norm.weight", Size::head_kv, Size::head_dim, Edit::none,
     false, true},
    {"self_attn.k_norm.bias", "attn_k_norm.bias", Size::head_kv, Size::head_dim, Edit::none, true,
     true},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

inline constexpr TensorRow kDbrxLayer[] = {
    {"norm_attn_norm.norm_1", "attn_norm", Size::embd},
    {"norm_attn_norm.attn.Wqkv", "attn_qkv", Size::qkv, Size::embd},
    {"norm_attn_norm.attn.out_proj", "attn_output", Size::embd, Size::q},
    {"norm_attn_norm.norm_2", "attn_output_norm", Size::embd},
    {"ffn.router.layer", "ffn_gate_inp", Size::expert, Size::embd},
};

/// The last matrices are transposed.
inline constexpr TensorRow kDbrxExperts[] = {
    {"ffn.experts.mlp.w1", "ffn_gate", Size::ff, Size::embd, Edit::none, false, true},
    {"ffn.experts.mlp.v1", "ffn_up", Size::ff, Size::embd, Edit::none, false, true},
    {"ffn.experts.mlp.w2", "ffn_down_exps.weight", Size::ff, Size::embd, Edit::transposed, false,
     true},
};

/// Norms compute with 1 + w.
inline constexpr TensorRow kStepLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd, Size::none, Edit::add_one},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.g_proj", "attn_gate", Size::out_gates, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"self_attn.q_norm", "attn_q_norm", Size::head_dim, Size::none, Edit::add_one},
    {"self_attn.k_norm", "attn_k_norm", Size::head_dim, Size::none, Edit::add_one},
    {"post_attention_layernorm", "ffn_norm", Size::embd, Size::none, Edit::add_one},
    {"mlp.gate_proj", "ffn_gate", Size::ff_dense, Size::embd, Edit::none, true},
    {"mlp.up_proj", "ffn_up", Size::ff_dense, Size::embd, Edit::none, true},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff_dense, Edit::none, true},
    {"moe.gate", "ffn_gate_inp", Size::expert, Size::embd, Edit::none, true},
    {"moe.router_bias", "exp_probs_b.bias", Size::expert, Size::none, Edit::none, true, true},
    {"share_expert.gate_proj", "ffn_gate_shexp", Size::ff_shared, Size::embd, Edit::none, true},
    {"share_expert.up_proj", "ffn_up_shexp", Size::ff_shared, Size::embd, Edit::none, true},
    {"share_expert.down_proj", "ffn_down_shexp", Size::embd, Size::ff_shared, Edit::none, true},
};

inline constexpr TensorRow kStepExperts[] = {
    {"moe.gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"moe.up_proj", "ffn_up", Size::ff, Size::embd},
    {"moe.down_proj", "ffn_down", Size::embd, Size::ff},
};

/// joined_experts of Qwen 3 VL as they are published.
inline constexpr TensorRow kTransposedExperts[] = {
    {"mlp.experts.gate_up_proj", "ffn_gate_exps.weight", Size::embd, Size::ff_twice,
     Edit::gate_of_halves, false, true},
    {"mlp.experts.gate_up_proj", "ffn_up_exps.weight", Size::embd, Size::ff_twice,
     Edit::up_of_halves, false, true},
    {"mlp.experts.down_proj", "ffn_down_exps.weight", Size::ff, Size::embd, Edit::transposed, false,
     true},
};

inline constexpr std::string_view kDeepseek[] = {"DeepseekV3ForCausalLM", "DeepseekV2ForCausalLM",
                                                 "Glm4MoeLiteForCausalLM"};
inline constexpr std::string_view kDeepseek32[] = {"DeepseekV32ForCausalLM"};
inline constexpr std::string_view kGlmDsa[] = {"GlmMoeDsaForCausalLM"};
inline constexpr std::string_view kSarvam[] = {"SarvamMoEForCausalLM"};
inline constexpr std::string_view kMistral4[] = {"Mistral4ForCausalLM"};
inline constexpr std::string_view kMiniCpm3[] = {"MiniCPM3ForCausalLM"};
inline constexpr std::string_view kMinimaxM2[] = {"MiniMaxM2ForCausalLM"};
inline constexpr std::string_view kQwen3VlMoe[] = {"Qwen3VLMoeForConditionalGeneration"};
inline constexpr std::string_view kErnieMoe[] = {"Ernie4_5_MoeForCausalLM"};
inline constexpr std::string_view kHunyuanMoe[] = {"HunYuanMoEV1ForCausalLM"};
inline constexpr std::string_view kDots1[] = {"Dots1ForCausalLM"};
inline constexpr std::string_view kExaoneMoe[] = {"ExaoneMoeForCausalLM", "ExaoneMoEForCausalLM"};
inline constexpr std::string_view kHy3[] = {"HYV3ForCausalLM"};
inline constexpr std::string_view kAfmoe[] = {"AfmoeForCausalLM"};
inline constexpr std::string_view kCohere2Moe[] = {"Cohere2MoeForCausalLM"};
inline constexpr std::string_view kGraniteSwa[] = {"GraniteSWAForCausalLM"};
inline constexpr std::string_view kGraniteMoeSwa[] = {"GraniteMoeSWAForCausalLM"};
inline constexpr std::string_view kBailingHybrid[] = {"BailingHybridForCausalLM",
                                                      "BailingMoeV3ForCausalLM"};
inline constexpr std::string_view kChameleon[] = {"ChameleonForConditionalGeneration"};
inline constexpr std::string_view kDbrx[] = {"DbrxForCausalLM"};
inline constexpr std::string_view kMimo2[] = {"MiMoV2FlashForCausalLM"};
inline constexpr std::string_view kStep[] = {"Step3p7ForConditionalGeneration",
                                             "Step3p5ForCausalLM"};
inline constexpr std::string_view kLaguna[] = {"LagunaForCausalLM"};

/// `experts` and `joined_experts`: those of Qwen 3, `mixtral_experts`: Mixtral's, `qwen3moe`: Qwen
/// 3's layers.
constexpr auto mixture_mappings(std::span<const TensorRow> experts,
                                std::span<const TensorRow> joined_experts,
                                std::span<const TensorRow> mixtral_experts,
                                std::span<const TensorRow> qwen3moe) {
  return std::array{
      GgufMapping{.architecture = "deepseek2",
                  .classes = kDeepseek,
                  .layer = kLatentAttention,
                  .ffn = kDeepseekFfn,
                  .experts = experts,
                  .expert_prefix = "mlp.experts.",
                  .read_own = read_deepseek,
                  .add_own_keys = add_deepseek_keys},
      GgufMapping{.architecture = "deepseek32",
                  .classes = kDeepseek32,
                  .layer = kIndexedAttention,
                  .ffn = kDeepseekFfn,
                  .experts = experts,
                  .expert_prefix = "mlp.experts.",
                  .read_own = read_deepseek,
                  .add_own_keys = add_deepseek_keys},
      GgufMapping{.architecture = "glm-dsa",
                  .classes = kGlmDsa,
                  .layer = kIndexedAttention,
                  .ffn = kDeepseekFfn,
                  .experts = experts,
                  .expert_prefix = "mlp.experts.",
                  .read_own = read_deepseek,
                  .add_own_keys = add_deepseek_keys},
      GgufMapping{.architecture = "glm4moe",
                  .classes = kSarvam,
                  .layer = kSarvamHeads,
                  .ffn = kBailingFfn,
                  .experts = experts,
                  .expert_prefix = "mlp.experts.",
                  .embeddings = "word_embeddings",
                  .rope_theta = 8e6},
      GgufMapping{.architecture = "chameleon",
                  .classes = kChameleon,
                  .layer = kChameleonLayer,
                  .read_own = read_chameleon,
                  .add_own_keys = add_chameleon_keys},
      GgufMapping{.architecture = "mistral4",
                  .classes = kMistral4,
                  .layer = kLatentAttention,
                  .ffn = kDeepseekFfn,
                  .experts = experts,
                  .joined_experts = joined_experts,
                  .expert_prefix = "mlp.experts.",
                  .read_own = read_deepseek,
                  .add_own_keys = add_deepseek_keys},
      GgufMapping{.architecture = "minicpm3",
                  .classes = kMiniCpm3,
                  .layer = kDenseLatentLayer,
                  .ties_embeddings = true,
                  .read_own = read_minicpm3,
                  .add_own_keys = add_minicpm3_keys},
      GgufMapping{.architecture = "minimax-m2",
                  .classes = kMinimaxM2,
                  .layer = kMinimaxLayer,
                  .experts = mixtral_experts,
                  .expert_prefix = "block_sparse_moe.experts.",
                  .rope_theta = 5e6,
                  .read_own = read_minimax},
      GgufMapping{.architecture = "qwen3vlmoe",
                  .classes = kQwen3VlMoe,
                  .layer = qwen3moe,
                  .experts = experts,
                  .joined_experts = joined_experts,
                  .expert_prefix = "mlp.experts.",
                  .rope_theta = 5e5,
                  .transposed_experts = kTransposedExperts},
      GgufMapping{.architecture = "ernie4_5-moe",
                  .classes = kErnieMoe,
                  .layer = kPlainHeads,
                  .ffn = kErnieMoeFfn,
                  .experts = experts,
                  .expert_prefix = "mlp.experts.",
                  .ties_embeddings = true,
                  .rope_theta = 5e5,
                  .read_own = read_ernie_moe,
                  .add_own_keys = add_ernie_moe_keys},
      GgufMapping{.architecture = "hunyuan-moe",
                  .classes = kHunyuanMoe,
                  .layer = kHunyuanMoeLayer,
                  .experts = experts,
                  .expert_prefix = "mlp.experts.",
                  .read_own = read_hunyuan_moe,
                  .add_own_keys = add_hunyuan_moe_keys},
      GgufMapping{.architecture = "dots1",
                  .classes = kDots1,
                  .layer = kNormedHeads,
                  .ffn = kDeepseekFfn,
                  .experts = experts,
                  .expert_prefix = "mlp.experts.",
                  .read_own = read_dots1},
      GgufMapping{.architecture = "exaone-moe",
                  .classes = kExaoneMoe,
                  .layer = kNormedHeads,
                  .ffn = kExaoneMoeFfn,
                  .experts = experts,
                  .expert_prefix = "mlp.experts.",
                  .read_own = read_exaone_moe,
                  .add_own_keys = add_exaone_moe_keys},
      GgufMapping{.architecture = "hy_v3",
                  .classes = kHy3,
                  .layer = kNormedHeads,
                  .ffn = kHy3Ffn,
                  .experts = experts,
                  .expert_prefix = "mlp.experts.",
                  .rope_theta = 11158840.0,
                  .read_own = read_hy3},
      GgufMapping{.architecture = "afmoe",
                  .classes = kAfmoe,
                  .layer = kAfmoeLayer,
                  .experts = experts,
                  .expert_prefix = "mlp.experts.",
                  .read_own = read_afmoe},
      GgufMapping{.architecture = "cohere2moe",
                  .classes = kCohere2Moe,
                  .layer = kCohere2MoeHeads,
                  .ffn = kDeepseekFfn,
                  .experts = experts,
                  .expert_prefix = "mlp.experts.",
                  .ties_embeddings = true,
                  .read_own = read_cohere2moe,
                  .add_own_keys = add_cohere2moe_keys},
      GgufMapping{.architecture = "granite_swa",
                  .classes = kGraniteSwa,
                  .layer = kGraniteSwaHeads,
                  .ffn = kGraniteSwaDense,
                  .ties_embeddings = true,
                  .read_own = read_granite_swa,
                  .add_own_keys = add_granite_swa_keys},
      GgufMapping{.architecture = "granite_swa",
                  .classes = kGraniteMoeSwa,
                  .layer = kGraniteSwaHeads,
                  .ffn = kGraniteSwaMoe,
                  .joined_experts = kGraniteSwaExperts,
                  .read_own = read_granite_swa,
                  .add_own_keys = add_granite_swa_keys},
      GgufMapping{.architecture = "bailingmoe3",
                  .classes = kBailingHybrid,
                  .layer = kBailingHybridHeads,
                  .ffn = kBailingFfn,
                  .experts = experts,
                  .expert_prefix = "mlp.experts.",
                  .embeddings = "word_embeddings",
                  .rope_theta = 6e6,
                  .read_own = read_bailing_hybrid,
                  .add_own_keys = add_bailing_hybrid_keys},
      GgufMapping{.architecture = "dbrx",
                  .classes = kDbrx,
                  .layer = kDbrxLayer,
                  .joined_experts = kDbrxExperts,
                  .root = "transformer",
                  .embeddings = "wte",
                  .norm = "transformer.norm_f",
                  .layer_epsilon = true,
                  .layers = "blocks",
                  .read_own_sizes = read_dbrx_sizes,
                  .read_own = read_dbrx},
      GgufMapping{.architecture = "mimo2",
                  .classes = kMimo2,
                  .layer = kMimo2Heads,
                  .ffn = kDeepseekFfn,
                  .experts = experts,
                  .expert_prefix = "mlp.experts.",
                  .read_own = read_mimo2,
                  .add_own_keys = add_mimo2_keys},
      GgufMapping{.architecture = "step35",
                  .classes = kStep,
                  .layer = kStepLayer,
                  .joined_experts = kStepExperts,
                  .norms = Edit::add_one,
                  .read_own = read_step,
                  .add_own_keys = add_step_keys},
      GgufMapping{.architecture = "laguna",
                  .classes = kLaguna,
                  .layer = kLagunaLayer,
                  .experts = experts,
                  .expert_prefix = "mlp.experts.",
                  .read_own = read_laguna,
                  .add_own_keys = add_laguna_keys},
  };
}

}  // namespace snapkv::huggingface
