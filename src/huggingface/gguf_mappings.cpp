// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>

#include "huggingface/biased_mappings.h"
#include "huggingface/dense_mappings.h"
#include "huggingface/gguf_mapping.h"
#include "huggingface/jamba_mappings.h"
#include "huggingface/mamba2_mappings.h"
#include "huggingface/mamba_mappings.h"
#include "huggingface/mixture_mappings.h"
#include "huggingface/more_mappings.h"
#include "huggingface/remote_layers_mappings.h"
#include "huggingface/remote_mappings.h"
#include "huggingface/remote_mixture_mappings.h"
#include "huggingface/rwkv_mappings.h"

namespace snapkv::huggingface {
namespace {

constexpr TensorRow kLlamaLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd, Edit::permute_q},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd, Edit::permute_k},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

constexpr TensorRow kQwen2Layer[] = {
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

constexpr TensorRow kQwen3Layer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"self_attn.q_norm", "attn_q_norm", Size::head_dim},
    {"self_attn.k_norm", "attn_k_norm", Size::head_dim},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

constexpr TensorRow kMixtralLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd, Edit::permute_q},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd, Edit::permute_k},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"block_sparse_moe.gate", "ffn_gate_inp", Size::expert, Size::embd},
};

constexpr TensorRow kPhiMoeLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"block_sparse_moe.gate", "ffn_gate_inp", Size::expert, Size::embd},
};

/// Of Phi's mixtures too.
constexpr TensorRow kMixtralExperts[] = {
    {"w1", "ffn_gate", Size::ff, Size::embd},
    {"w3", "ffn_up", Size::ff, Size::embd},
    {"w2", "ffn_down", Size::embd, Size::ff},
};

constexpr TensorRow kQwen3MoeLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"self_attn.q_norm", "attn_q_norm", Size::head_dim},
    {"self_attn.k_norm", "attn_k_norm", Size::head_dim},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.gate", "ffn_gate_inp", Size::expert, Size::embd},
};

constexpr TensorRow kQwen2MoeLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.gate", "ffn_gate_inp", Size::expert, Size::embd},
    {"mlp.shared_expert_gate", "ffn_gate_inp_shexp", Size::embd},
    {"mlp.shared_expert.gate_proj", "ffn_gate_shexp", Size::ff_shared, Size::embd},
    {"mlp.shared_expert.up_proj", "ffn_up_shexp", Size::ff_shared, Size::embd},
    {"mlp.shared_expert.down_proj", "ffn_down_shexp", Size::embd, Size::ff_shared},
};

/// Of Qwen 2 and 3.
constexpr TensorRow kQwenExperts[] = {
    {"gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"up_proj", "ffn_up", Size::ff, Size::embd},
    {"down_proj", "ffn_down", Size::embd, Size::ff},
};

constexpr TensorRow kGemma3Layer[] = {
    {"input_layernorm", "attn_norm", Size::embd, Size::none, Edit::add_one},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"self_attn.q_norm", "attn_q_norm", Size::head_dim, Size::none, Edit::add_one},
    {"self_attn.k_norm", "attn_k_norm", Size::head_dim, Size::none, Edit::add_one},
    {"post_attention_layernorm", "post_attention_norm", Size::embd, Size::none, Edit::add_one},
    {"pre_feedforward_layernorm", "ffn_norm", Size::embd, Size::none, Edit::add_one},
    {"post_feedforward_layernorm", "post_ffw_norm", Size::embd, Size::none, Edit::add_one},
    {"mlp.gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

constexpr TensorRow kPhi3Layer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.qkv_proj", "attn_qkv", Size::qkv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.gate_up_proj", "ffn_up", Size::ff_twice, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

constexpr TensorRow kLfm2Layer[] = {
    {"operator_norm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd, Edit::none, true},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd, Edit::none, true},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd, Edit::none, true},
    {"self_attn.out_proj", "attn_output", Size::embd, Size::q, Edit::none, true},
    {"self_attn.q_layernorm", "attn_q_norm", Size::head_dim, Size::none, Edit::none, true},
    {"self_attn.k_layernorm", "attn_k_norm", Size::head_dim, Size::none, Edit::none, true},
    {"conv.in_proj", "shortconv.in_proj", Size::embd_thrice, Size::embd, Edit::none, true},
    {"conv.conv", "shortconv.conv", Size::embd, Size::kernel, Edit::none, true},
    {"conv.out_proj", "shortconv.out_proj", Size::embd, Size::embd, Edit::none, true},
    {"ffn_norm", "ffn_norm", Size::embd},
    {"feed_forward.w1", "ffn_gate", Size::ff, Size::embd},
    {"feed_forward.w3", "ffn_up", Size::ff, Size::embd},
    {"feed_forward.w2", "ffn_down", Size::embd, Size::ff},
};

constexpr TensorRow kLfm2MoeLayer[] = {
    {"operator_norm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd, Edit::none, true},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd, Edit::none, true},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd, Edit::none, true},
    {"self_attn.out_proj", "attn_output", Size::embd, Size::q, Edit::none, true},
    {"self_attn.q_layernorm", "attn_q_norm", Size::head_dim, Size::none, Edit::none, true},
    {"self_attn.k_layernorm", "attn_k_norm", Size::head_dim, Size::none, Edit::none, true},
    {"conv.in_proj", "shortconv.in_proj", Size::embd_thrice, Size::embd, Edit::none, true},
    {"conv.conv", "shortconv.conv", Size::embd, Size::kernel, Edit::none, true},
    {"conv.out_proj", "shortconv.out_proj", Size::embd, Size::embd, Edit::none, true},
    {"ffn_norm", "ffn_norm", Size::embd},
    {"feed_forward.w1", "ffn_gate", Size::ff_dense, Size::embd, Edit::none, true},
    {"feed_forward.w3", "ffn_up", Size::ff_dense, Size::embd, Edit::none, true},
    {"feed_forward.w2", "ffn_down", Size::embd, Size::ff_dense, Edit::none, true},
    {"feed_forward.gate", "ffn_gate_inp", Size::expert, Size::embd, Edit::none, true},
    {"feed_forward.expert_bias", "exp_probs_b.bias", Size::expert, Size::none, Edit::none, true,
     true},
};

constexpr TensorRow kLfm2MoeExperts[] = {
    {"w1", "ffn_gate", Size::ff, Size::embd},
    {"w3", "ffn_up", Size::ff, Size::embd},
    {"w2", "ffn_down", Size::embd, Size::ff},
};

/// Of Qwen 3.5 and Qwen3-Next: attention, or linear attention by the gated delta rule.
constexpr TensorRow kQwen3NextMixers[] = {
    {"input_layernorm", "attn_norm", Size::embd, Size::none, Edit::add_one},
    {"self_attn.q_proj", "attn_q", Size::q_and_gate, Size::embd, Edit::none, true},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd, Edit::none, true},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd, Edit::none, true},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q, Edit::none, true},
    {"self_attn.q_norm", "attn_q_norm", Size::head_dim, Size::none, Edit::add_one, true},
    {"self_attn.k_norm", "attn_k_norm", Size::head_dim, Size::none, Edit::add_one, true},
    {"linear_attn.in_proj_qkv", "attn_qkv", Size::linear_qkv, Size::embd, Edit::value_heads, true},
    {"linear_attn.in_proj_z", "attn_gate", Size::linear_values, Size::embd, Edit::value_heads,
     true},
    {"linear_attn.in_proj_b", "ssm_beta", Size::linear_head, Size::embd, Edit::value_heads, true},
    {"linear_attn.in_proj_a", "ssm_alpha", Size::linear_head, Size::embd, Edit::value_heads, true},
    {"linear_attn.in_proj_qkvz", "attn_qkv", Size::linear_qkv_and_gate, Size::embd,
     Edit::grouped_qkv, true},
    {"linear_attn.in_proj_qkvz", "attn_gate", Size::linear_qkv_and_gate, Size::embd,
     Edit::grouped_gate, true},
    {"linear_attn.in_proj_ba", "ssm_ba", Size::linear_head_twice, Size::embd, Edit::none, true},
    {"linear_attn.conv1d", "ssm_conv1d", Size::linear_qkv, Size::kernel, Edit::value_heads, true},
    {"linear_attn.A_log", "ssm_a", Size::linear_head, Size::none, Edit::decay_rate, true, true},
    {"linear_attn.dt_bias", "ssm_dt.bias", Size::linear_head, Size::none, Edit::value_heads, true,
     true},
    {"linear_attn.norm", "ssm_norm", Size::linear_value, Size::none, Edit::none, true},
    {"linear_attn.out_proj", "ssm_out", Size::embd, Size::linear_values, Edit::value_columns, true},
    {"post_attention_layernorm", "post_attention_norm", Size::embd, Size::none, Edit::add_one},
};

constexpr TensorRow kDenseFfn[] = {
    {"mlp.gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

constexpr TensorRow kSharedExpertFfn[] = {
    {"mlp.gate", "ffn_gate_inp", Size::expert, Size::embd},
    {"mlp.shared_expert_gate", "ffn_gate_inp_shexp", Size::embd},
    {"mlp.shared_expert.gate_proj", "ffn_gate_shexp", Size::ff_shared, Size::embd},
    {"mlp.shared_expert.up_proj", "ffn_up_shexp", Size::ff_shared, Size::embd},
    {"mlp.shared_expert.down_proj", "ffn_down_shexp", Size::embd, Size::ff_shared},
};

constexpr TensorRow kJoinedExperts[] = {
    {"mlp.experts.gate_up_proj", "ffn_gate", Size::ff_twice, Size::embd, Edit::first_half, false,
     true},
    {"mlp.experts.gate_up_proj", "ffn_up", Size::ff_twice, Size::embd, Edit::second_half, false,
     true},
    {"mlp.experts.down_proj", "ffn_down", Size::embd, Size::ff, Edit::none, false, true},
};

constexpr TensorRow kGptOssLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"self_attn.sinks", "attn_sinks.weight", Size::head, Size::none, Edit::none, false, true},
    {"post_attention_layernorm", "post_attention_norm", Size::embd},
    {"mlp.router", "ffn_gate_inp", Size::expert, Size::embd},
};

/// The matrices are transposed, and columns of gate and up alternate; with MXFP4 neither is so.
constexpr TensorRow kGptOssExperts[] = {
    {"mlp.experts.gate_up_proj", "ffn_gate_exps.weight", Size::embd, Size::ff_twice,
     Edit::gate_of_pairs, false, true},
    {"mlp.experts.gate_up_proj", "ffn_up_exps.weight", Size::embd, Size::ff_twice,
     Edit::up_of_pairs, false, true},
    {"mlp.experts.down_proj", "ffn_down_exps.weight", Size::ff, Size::embd, Edit::transposed, false,
     true},
    {"mlp.experts.gate_up_proj_bias", "ffn_gate_exps.bias", Size::ff_twice, Size::none,
     Edit::gate_of_pairs, false, true},
    {"mlp.experts.gate_up_proj_bias", "ffn_up_exps.bias", Size::ff_twice, Size::none,
     Edit::up_of_pairs, false, true},
    {"mlp.experts.down_proj_bias", "ffn_down_exps.bias", Size::embd, Size::none, Edit::none, false,
     true},
};

constexpr TensorRow kOlmoeLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"self_attn.q_norm", "attn_q_norm", Size::q},
    {"self_attn.k_norm", "attn_k_norm", Size::kv},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.gate", "ffn_gate_inp", Size::expert, Size::embd},
};

constexpr TensorRow kGraniteMoeLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd, Edit::permute_q},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd, Edit::permute_k},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"block_sparse_moe.router.layer", "ffn_gate_inp", Size::expert, Size::embd},
    {"shared_mlp.input_linear", "ffn_gate_shexp", Size::ff_shared_twice, Size::embd,
     Edit::first_half, true},
    {"shared_mlp.input_linear", "ffn_up_shexp", Size::ff_shared_twice, Size::embd,
     Edit::second_half, true},
    {"shared_mlp.output_linear", "ffn_down_shexp", Size::embd, Size::ff_shared, Edit::none, true},
};

constexpr TensorRow kGraniteMoeExperts[] = {
    {"block_sparse_moe.input_linear", "ffn_gate", Size::ff_twice, Size::embd, Edit::first_half},
    {"block_sparse_moe.input_linear", "ffn_up", Size::ff_twice, Size::embd, Edit::second_half},
    {"block_sparse_moe.output_linear", "ffn_down", Size::embd, Size::ff},
};

constexpr std::string_view kLlama[] = {"LlamaForCausalLM", "MistralForCausalLM",
                                       "InternLM3ForCausalLM"};
constexpr std::string_view kMixtral[] = {"MixtralForCausalLM"};
constexpr std::string_view kQwen2[] = {"Qwen2ForCausalLM"};
constexpr std::string_view kQwen2Moe[] = {"Qwen2MoeForCausalLM"};
constexpr std::string_view kQwen3[] = {"Qwen3ForCausalLM"};
constexpr std::string_view kQwen3Moe[] = {"Qwen3MoeForCausalLM"};
constexpr std::string_view kGemma3[] = {"Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"};
constexpr std::string_view kPhi3[] = {"Phi3ForCausalLM"};
constexpr std::string_view kPhiMoe[] = {"PhimoeForCausalLM", "PhiMoEForCausalLM"};
constexpr std::string_view kLfm2[] = {"Lfm2ForCausalLM"};
constexpr std::string_view kLfm2Moe[] = {"Lfm2MoeForCausalLM"};

constexpr std::string_view kQwen35[] = {"Qwen3_5ForCausalLM", "Qwen3_5ForConditionalGeneration"};
constexpr std::string_view kQwen35Moe[] = {"Qwen3_5MoeForCausalLM",
                                           "Qwen3_5MoeForConditionalGeneration"};
constexpr std::string_view kQwen3Next[] = {"Qwen3NextForCausalLM"};

constexpr std::string_view kGptOss[] = {"GptOssForCausalLM"};
constexpr std::string_view kOlmoe[] = {"OlmoeForCausalLM"};
constexpr std::string_view kGraniteMoe[] = {"GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM"};

constexpr std::array kFirst = {
    GgufMapping{.architecture = "llama", .classes = kLlama, .layer = kLlamaLayer},
    GgufMapping{.architecture = "llama",
                .classes = kMixtral,
                .layer = kMixtralLayer,
                .experts = kMixtralExperts,
                .expert_prefix = "block_sparse_moe.experts."},
    GgufMapping{.architecture = "qwen2", .classes = kQwen2, .layer = kQwen2Layer},
    GgufMapping{.architecture = "qwen2moe",
                .classes = kQwen2Moe,
                .layer = kQwen2MoeLayer,
                .experts = kQwenExperts,
                .expert_prefix = "mlp.experts."},
    GgufMapping{.architecture = "qwen3", .classes = kQwen3, .layer = kQwen3Layer},
    GgufMapping{.architecture = "qwen3moe",
                .classes = kQwen3Moe,
                .layer = kQwen3MoeLayer,
                .experts = kQwenExperts,
                .expert_prefix = "mlp.experts."},
    GgufMapping{.architecture = "gemma3",
                .classes = kGemma3,
                .layer = kGemma3Layer,
                .norms = Edit::add_one,
                .ties_embeddings = true,
                .activation = "gelu_pytorch_tanh",
                .activation_key = "hidden_activation"},
    GgufMapping{.architecture = "phi3", .classes = kPhi3, .layer = kPhi3Layer},
    GgufMapping{.architecture = "phimoe",
                .classes = kPhiMoe,
                .layer = kPhiMoeLayer,
                .experts = kMixtralExperts,
                .expert_prefix = "block_sparse_moe.experts.",
                .layer_norms = true},
    GgufMapping{.architecture = "lfm2",
                .classes = kLfm2,
                .layer = kLfm2Layer,
                .norm = "model.embedding_norm",
                .gguf_norm = "token_embd_norm",
                .ties_embeddings = true},
    GgufMapping{.architecture = "lfm2moe",
                .classes = kLfm2Moe,
                .layer = kLfm2MoeLayer,
                .experts = kLfm2MoeExperts,
                .expert_prefix = "feed_forward.experts.",
                .norm = "model.embedding_norm",
                .gguf_norm = "token_embd_norm",
                .ties_embeddings = true},
    GgufMapping{.architecture = "qwen35",
                .classes = kQwen35,
                .layer = kQwen3NextMixers,
                .ffn = kDenseFfn,
                .norms = Edit::add_one},
    GgufMapping{.architecture = "qwen35moe",
                .classes = kQwen35Moe,
                .layer = kQwen3NextMixers,
                .ffn = kSharedExpertFfn,
                .experts = kQwenExperts,
                .joined_experts = kJoinedExperts,
                .expert_prefix = "mlp.experts.",
                .norms = Edit::add_one},
    GgufMapping{.architecture = "qwen3next",
                .classes = kQwen3Next,
                .layer = kQwen3NextMixers,
                .ffn = kSharedExpertFfn,
                .experts = kQwenExperts,
                .joined_experts = kJoinedExperts,
                .expert_prefix = "mlp.experts.",
                .norms = Edit::add_one},
    GgufMapping{.architecture = "gpt-oss",
                .classes = kGptOss,
                .layer = kGptOssLayer,
                .joined_experts = kGptOssExperts},
    GgufMapping{.architecture = "olmoe",
                .classes = kOlmoe,
                .layer = kOlmoeLayer,
                .experts = kQwenExperts,
                .expert_prefix = "mlp.experts."},
    GgufMapping{.architecture = "granitemoe",
                .classes = kGraniteMoe,
                .layer = kGraniteMoeLayer,
                .joined_experts = kGraniteMoeExperts},
};

constexpr auto kMappings = [] {
  constexpr auto kMore = more_mappings(kQwen2Layer, kQwen3Layer, kQwen3MoeLayer, kQwenExperts,
                                       kJoinedExperts, kMixtralExperts);
  constexpr auto kMixtures =
      mixture_mappings(kQwenExperts, kJoinedExperts, kMixtralExperts, kQwen3MoeLayer);
  constexpr auto kDense = dense_mappings(kLlamaLayer, kQwen2Layer);
  constexpr auto kRemote = remote_mappings(kLlamaLayer, kQwen2Layer);
  constexpr auto kRemoteMixtures = remote_mixture_mappings(kQwenExperts, kMixtralExperts);
  std::array<GgufMapping, kFirst.size() + kMore.size() + kMixtures.size() + kMamba2Mappings.size() +
                              kJambaMappings.size() + kMambaMappings.size() + kDense.size() +
                              kRemote.size() + kBiasedMappings.size() + kRemoteMixtures.size() +
                              kRemoteLayersMappings.size() + kRwkvMappings.size()>
      all;
  auto end = std::copy(kFirst.begin(), kFirst.end(), all.begin());
  end = std::copy(kMore.begin(), kMore.end(), end);
  end = std::copy(kMixtures.begin(), kMixtures.end(), end);
  end = std::copy(kMamba2Mappings.begin(), kMamba2Mappings.end(), end);
  end = std::copy(kJambaMappings.begin(), kJambaMappings.end(), end);
  end = std::copy(kMambaMappings.begin(), kMambaMappings.end(), end);
  end = std::copy(kDense.begin(), kDense.end(), end);
  end = std::copy(kRemote.begin(), kRemote.end(), end);
  end = std::copy(kBiasedMappings.begin(), kBiasedMappings.end(), end);
  end = std::copy(kRemoteMixtures.begin(), kRemoteMixtures.end(), end);
  end = std::copy(kRemoteLayersMappings.begin(), kRemoteLayersMappings.end(), end);
  std::copy(kRwkvMappings.begin(), kRwkvMappings.end(), end);
  return all;
}();

}  // namespace

std::span<const GgufMapping> gguf_mappings() { return kMappings; }

}  // namespace snapkv::huggingface
