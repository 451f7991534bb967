// SPDX-License-Identifier: MIT
// Rows of the table in gguf_mappings.cpp: GLM 4, Seed-OSS, EXAONE 4, ERNIE 4.5, Hunyuan and the
// text models of Qwen 2 VL to Qwen 3 VL.
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

inline constexpr std::string_view kGlm4[] = {"Glm4ForCausalLM"};
inline constexpr std::string_view kGlm4Moe[] = {"Glm4MoeForCausalLM"};
inline constexpr std::string_view kSeedOss[] = {"SeedOssForCausalLM"};
inline constexpr std::string_view kExaone4[] = {"Exaone4ForCausalLM"};
inline constexpr std::string_view kErnie[] = {"Ernie4_5ForCausalLM"};
inline constexpr std::string_view kHunyuan[] = {"HunYuanDenseV1ForCausalLM"};
inline constexpr std::string_view kQwen2Vl[] = {"Qwen2VLForConditionalGeneration",
                                                "Qwen2_5_VLForConditionalGeneration"};
inline constexpr std::string_view kQwen3Vl[] = {"Qwen3VLForConditionalGeneration"};

/// `qwen2` and `qwen3`: the layers of those.
constexpr auto more_mappings(std::span<const TensorRow> qwen2, std::span<const TensorRow> qwen3) {
  return std::array{
      GgufMapping{.architecture = "glm4", .classes = kGlm4, .layer = kGlm4Layer},
      GgufMapping{.architecture = "glm4moe",
                  .classes = kGlm4Moe,
                  .layer = kGlm4MoeLayer,
                  .experts = kGlm4MoeExperts,
                  .expert_prefix = "mlp.experts."},
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
