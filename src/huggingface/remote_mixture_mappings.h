// SPDX-License-Identifier: MIT
// Rows of the table in gguf_mappings.cpp: mixtures of experts that transformers has no class for
// (remote_mixture_config.h).
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "huggingface/gguf_mapping.h"
#include "huggingface/mixture_mappings.h"
#include "huggingface/remote_mixture_config.h"

namespace snapkv::huggingface {

inline constexpr TensorRow kBailing2Heads[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"attention.query_key_value", "attn_qkv", Size::qkv, Size::embd},
    {"attention.dense", "attn_output", Size::embd, Size::q},
    {"attention.query_layernorm", "attn_q_norm", Size::head_dim},
    {"attention.key_layernorm", "attn_k_norm", Size::head_dim},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
};

/// GGUF has queries, keys and values apart.
inline constexpr TensorRow kBailing1Heads[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"attention.query_key_value", "attn_q", Size::qkv, Size::embd, Edit::permute_q, false, false,
     Factor::none, When::always, Part::queries},
    {"attention.query_key_value", "attn_k", Size::qkv, Size::embd, Edit::permute_k, false, false,
     Factor::none, When::always, Part::keys},
    {"attention.query_key_value", "attn_v", Size::qkv, Size::embd, Edit::none, false, false,
     Factor::none, When::always, Part::values},
    {"attention.dense", "attn_output", Size::embd, Size::q},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
};

inline constexpr TensorRow kPermutedHeads[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd, Edit::permute_q},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd, Edit::permute_k},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
};

inline constexpr TensorRow kGroveFfn[] = {
    {"mlp.gate", "ffn_gate_inp", Size::expert, Size::embd},
};

inline constexpr TensorRow kGroveAdjugates[] = {
    {"gate_proj", "ffn_gate_ch", Size::ff_adjugate, Size::embd},
    {"up_proj", "ffn_up_ch", Size::ff_adjugate, Size::embd},
    {"down_proj", "ffn_down_ch", Size::embd, Size::ff_adjugate},
};

inline constexpr TensorRow kSmallThinkerFfn[] = {
    {"block_sparse_moe.primary_router", "ffn_gate_inp", Size::expert, Size::embd},
};

inline constexpr TensorRow kSmallThinkerExperts[] = {
    {"gate", "ffn_gate", Size::ff, Size::embd},
    {"up", "ffn_up", Size::ff, Size::embd},
    {"down", "ffn_down", Size::embd, Size::ff},
};

/// Each layer has a dense network, which reads what attention adds to, and experts, which read what
/// the layer reads.
inline constexpr TensorRow kArcticLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd, Edit::permute_q},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd, Edit::permute_k},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"residual_layernorm", "ffn_norm", Size::embd},
    {"residual_mlp.w1", "ffn_gate", Size::embd, Size::embd},
    {"residual_mlp.w3", "ffn_up", Size::embd, Size::embd},
    {"residual_mlp.w2", "ffn_down", Size::embd, Size::embd},
    {"post_attention_layernorm", "ffn_norm_exps", Size::embd},
    {"block_sparse_moe.gate", "ffn_gate_inp", Size::expert, Size::embd},
};

inline constexpr std::string_view kBailing2[] = {"BailingMoeV2ForCausalLM"};
inline constexpr std::string_view kBailing1[] = {"BailingMoeForCausalLM"};
inline constexpr std::string_view kDeepseek1[] = {"DeepseekForCausalLM"};
inline constexpr std::string_view kDeepseekOcr[] = {"DeepseekOCRForCausalLM"};
inline constexpr std::string_view kGrove[] = {"GroveMoeForCausalLM"};
inline constexpr std::string_view kSmallThinker[] = {"SmallThinkerForCausalLM"};
inline constexpr std::string_view kArctic[] = {"ArcticForCausalLM"};

/// A buffer of GroveMoE that its class does not use.
inline constexpr std::string_view kGroveBuffers[] = {"mlp.expert_bias"};
/// What reads pictures.
inline constexpr std::string_view kDeepseekOcrParts[] = {"model.sam_model.", "model.vision_model.",
                                                         "model.projector.", "model.image_newline",
                                                         "model.view_seperator"};

/// `experts`: those of Qwen 3, `mixtral_experts`: Mixtral's.
constexpr auto remote_mixture_mappings(std::span<const TensorRow> experts,
                                       std::span<const TensorRow> mixtral_experts) {
  return std::array{
      GgufMapping{.architecture = "bailingmoe2",
                  .classes = kBailing2,
                  .layer = kBailing2Heads,
                  .ffn = kBailingFfn,
                  .experts = experts,
                  .expert_prefix = "mlp.experts.",
                  .embeddings = "word_embeddings",
                  .rope_theta = 6e5,
                  .read_own = read_bailing2,
                  .add_own_keys = add_counted_experts_keys},
      GgufMapping{.architecture = "bailingmoe",
                  .classes = kBailing1,
                  .layer = kBailing1Heads,
                  .ffn = kBailingFfn,
                  .experts = experts,
                  .expert_prefix = "mlp.experts.",
                  .embeddings = "word_embeddings",
                  .read_own = read_bailing1,
                  .add_own_keys = add_counted_experts_keys},
      GgufMapping{.architecture = "deepseek",
                  .classes = kDeepseek1,
                  .layer = kPermutedHeads,
                  .ffn = kDeepseekFfn,
                  .experts = experts,
                  .expert_prefix = "mlp.experts.",
                  .read_own = read_deepseek1,
                  .add_own_keys = add_counted_experts_keys},
      GgufMapping{.architecture = "deepseek2-ocr",
                  .classes = kDeepseekOcr,
                  .layer = kPlainHeads,
                  .ffn = kDeepseekFfn,
                  .experts = experts,
                  .expert_prefix = "mlp.experts.",
                  .other_parts = kDeepseekOcrParts,
                  .read_own_sizes = read_deepseek_ocr_sizes,
                  .read_own = read_deepseek_ocr,
                  .add_own_keys = add_counted_experts_keys},
      GgufMapping{.architecture = "grovemoe",
                  .classes = kGrove,
                  .layer = kNormedHeads,
                  .ffn = kGroveFfn,
                  .experts = experts,
                  .expert_prefix = "mlp.experts.",
                  .adjugates = kGroveAdjugates,
                  .adjugate_prefix = "mlp.chunk_experts.",
                  .buffers = kGroveBuffers,
                  .read_own = read_grove,
                  .add_own_keys = add_grove_keys},
      GgufMapping{.architecture = "smallthinker",
                  .classes = kSmallThinker,
                  .layer = kPlainHeads,
                  .ffn = kSmallThinkerFfn,
                  .experts = kSmallThinkerExperts,
                  .expert_prefix = "block_sparse_moe.experts.",
                  .ties_embeddings = true,
                  .activation = "relu",
                  .rope_theta = 1e6,
                  .read_own_sizes = read_smallthinker_sizes,
                  .read_own = read_smallthinker},
      GgufMapping{.architecture = "arctic",
                  .classes = kArctic,
                  .layer = kArcticLayer,
                  .experts = mixtral_experts,
                  .expert_prefix = "block_sparse_moe.experts.",
                  .rope_theta = 1e6,
                  .read_own = read_arctic,
                  .add_own_keys = add_arctic_keys},
  };
}

}  // namespace snapkv::huggingface
