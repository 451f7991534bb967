// SPDX-License-Identifier: MIT
// Rows of the table in gguf_mappings.cpp: dense models whose folders need no more than DenseTraits.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "huggingface/dense_config.h"
#include "huggingface/dense_traits.h"
#include "huggingface/gguf_mapping.h"
#include "huggingface/more_mappings.h"

namespace snapkv::huggingface {

/// The row, of models that have the tensor under this condition only.
constexpr TensorRow only(When when, TensorRow row) {
  row.when = when;
  return row;
}

inline constexpr TensorRow kGemmaLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd, Size::none, Edit::add_one},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"post_attention_layernorm", "ffn_norm", Size::embd, Size::none, Edit::add_one},
    {"mlp.gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

inline constexpr TensorRow kGemma2Layer[] = {
    {"input_layernorm", "attn_norm", Size::embd, Size::none, Edit::add_one},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"post_attention_layernorm", "post_attention_norm", Size::embd, Size::none, Edit::add_one},
    {"pre_feedforward_layernorm", "ffn_norm", Size::embd, Size::none, Edit::add_one},
    {"post_feedforward_layernorm", "post_ffw_norm", Size::embd, Size::none, Edit::add_one},
    {"mlp.gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

inline constexpr TensorRow kOlmo2Layer[] = {
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"self_attn.q_norm", "attn_q_norm", Size::q},
    {"self_attn.k_norm", "attn_k_norm", Size::kv},
    {"post_attention_layernorm", "post_attention_norm", Size::embd},
    {"mlp.gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
    {"post_feedforward_layernorm", "post_ffw_norm", Size::embd},
};

/// Of both generations. Neighbouring values are rotated in the folder too.
inline constexpr TensorRow kCohereLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    only(When::qk_norm, {"self_attn.q_norm", "attn_q_norm", Size::head, Size::head_dim}),
    only(When::qk_norm, {"self_attn.k_norm", "attn_k_norm", Size::head_kv, Size::head_dim}),
    {"mlp.gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

inline constexpr TensorRow kStarcoder2Layer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.c_fc", "ffn_up", Size::ff, Size::embd},
    {"mlp.c_proj", "ffn_down", Size::embd, Size::ff},
};

/// Each head may have a norm of its own.
inline constexpr TensorRow kStableLmLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    only(When::qk_norm,
         {"self_attn.q_layernorm.norms", "attn_q_norm", Size::head, Size::head_dim, Edit::stacked}),
    only(When::qk_norm, {"self_attn.k_layernorm.norms", "attn_k_norm", Size::head_kv,
                         Size::head_dim, Edit::stacked}),
    only(When::one_after_another, {"post_attention_layernorm", "ffn_norm", Size::embd}),
    {"mlp.gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

inline constexpr TensorRow kPhiLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.dense", "attn_output", Size::embd, Size::q},
    {"mlp.fc1", "ffn_up", Size::ff, Size::embd},
    {"mlp.fc2", "ffn_down", Size::embd, Size::ff},
};

/// The matrices are transposed.
inline constexpr TensorRow kGpt2Layer[] = {
    {"ln_1", "attn_norm", Size::embd},
    {"attn.c_attn", "attn_qkv", Size::embd, Size::qkv, Edit::transposed},
    {"attn.c_proj", "attn_output", Size::q, Size::embd, Edit::transposed},
    {"ln_2", "ffn_norm", Size::embd},
    {"mlp.c_fc", "ffn_up", Size::embd, Size::ff, Edit::transposed},
    {"mlp.c_proj", "ffn_down", Size::ff, Size::embd, Edit::transposed},
};

inline constexpr TensorRow kGptBigCodeLayer[] = {
    {"ln_1", "attn_norm", Size::embd},
    {"attn.c_attn", "attn_qkv", Size::qkv, Size::embd, Edit::head_groups},
    {"attn.c_proj", "attn_output", Size::embd, Size::q},
    {"ln_2", "ffn_norm", Size::embd},
    {"mlp.c_fc", "ffn_up", Size::ff, Size::embd},
    {"mlp.c_proj", "ffn_down", Size::embd, Size::ff},
};

inline constexpr TensorRow kGptNeoxLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"attention.query_key_value", "attn_qkv", Size::qkv, Size::embd, Edit::head_groups},
    {"attention.dense", "attn_output", Size::embd, Size::q},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.dense_h_to_4h", "ffn_up", Size::ff, Size::embd},
    {"mlp.dense_4h_to_h", "ffn_down", Size::embd, Size::ff},
};

inline constexpr TensorRow kFalconLayer[] = {
    only(When::one_norm, {"input_layernorm", "attn_norm", Size::embd}),
    only(When::two_norms, {"ln_mlp", "attn_norm", Size::embd}),
    only(When::two_norms, {"ln_attn", "attn_norm_2", Size::embd}),
    {"self_attention.query_key_value", "attn_qkv", Size::qkv, Size::embd, Edit::head_groups},
    {"self_attention.dense", "attn_output", Size::embd, Size::q},
    {"mlp.dense_h_to_4h", "ffn_up", Size::ff, Size::embd},
    {"mlp.dense_4h_to_h", "ffn_down", Size::embd, Size::ff},
};

inline constexpr TensorRow kNemotronLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd, Size::none, Edit::add_one},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"post_attention_layernorm", "ffn_norm", Size::embd, Size::none, Edit::add_one},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

inline constexpr TensorRow kArceeLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd, Edit::permute_q},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd, Edit::permute_k},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

/// The numbers of xIELU are keys in GGUF (add_xielu_keys).
inline constexpr TensorRow kApertusLayer[] = {
    {"attention_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"self_attn.q_norm", "attn_q_norm", Size::head_dim},
    {"self_attn.k_norm", "attn_k_norm", Size::head_dim},
    {"feedforward_layernorm", "ffn_norm", Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

inline constexpr TensorRow kBitnetLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.attn_sub_norm", "attn_sub_norm", Size::q},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.ffn_sub_norm", "ffn_sub_norm", Size::ff},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

/// Neighbouring values are rotated in the folder too.
inline constexpr TensorRow kGlmLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.gate_up_proj", "ffn_up", Size::ff_twice, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

inline constexpr TensorRow kExaoneLayer[] = {
    {"ln_1", "attn_norm", Size::embd},
    {"attn.attention.q_proj", "attn_q", Size::q, Size::embd},
    {"attn.attention.k_proj", "attn_k", Size::kv, Size::embd},
    {"attn.attention.v_proj", "attn_v", Size::kv, Size::embd},
    {"attn.attention.out_proj", "attn_output", Size::embd, Size::q},
    {"ln_2", "ffn_norm", Size::embd},
    {"mlp.c_fc_0", "ffn_gate", Size::ff, Size::embd},
    {"mlp.c_fc_1", "ffn_up", Size::ff, Size::embd},
    {"mlp.c_proj", "ffn_down", Size::embd, Size::ff},
};

inline constexpr std::string_view kGemma[] = {"GemmaForCausalLM"};
inline constexpr std::string_view kGemma2[] = {"Gemma2ForCausalLM"};
inline constexpr std::string_view kSmollm3[] = {"SmolLM3ForCausalLM"};
inline constexpr std::string_view kGranite[] = {"GraniteForCausalLM"};
inline constexpr std::string_view kOlmo2[] = {"Olmo2ForCausalLM"};
inline constexpr std::string_view kOlmo3[] = {"Olmo3ForCausalLM"};
inline constexpr std::string_view kCohere[] = {"CohereForCausalLM"};
inline constexpr std::string_view kCohere2[] = {"Cohere2ForCausalLM"};
inline constexpr std::string_view kMistral3[] = {"Ministral3ForCausalLM",
                                                 "Mistral3ForConditionalGeneration"};
inline constexpr std::string_view kMinistral[] = {"MinistralForCausalLM"};
inline constexpr std::string_view kCwm[] = {"CwmForCausalLM"};
inline constexpr std::string_view kStarcoder2[] = {"Starcoder2ForCausalLM"};
inline constexpr std::string_view kStableLm[] = {"StableLmForCausalLM"};
inline constexpr std::string_view kPhi[] = {"PhiForCausalLM"};
inline constexpr std::string_view kGpt2[] = {"GPT2LMHeadModel"};
inline constexpr std::string_view kGptNeox[] = {"GPTNeoXForCausalLM"};
inline constexpr std::string_view kFalcon[] = {"FalconForCausalLM"};
inline constexpr std::string_view kGptBigCode[] = {"GPTBigCodeForCausalLM"};
inline constexpr std::string_view kNemotron[] = {"NemotronForCausalLM"};
inline constexpr std::string_view kArcee[] = {"ArceeForCausalLM"};
inline constexpr std::string_view kApertus[] = {"ApertusForCausalLM"};
inline constexpr std::string_view kBitnet[] = {"BitNetForCausalLM"};
inline constexpr std::string_view kPaddleOcr[] = {"PaddleOCRVLForConditionalGeneration"};
inline constexpr std::string_view kHunyuanVl[] = {"HunYuanVLForConditionalGeneration"};
inline constexpr std::string_view kGlm[] = {"GlmForCausalLM"};
inline constexpr std::string_view kExaone[] = {"ExaoneForCausalLM"};

inline constexpr FixedFlag kNoSlidingWindow[] = {{"use_sliding_window", false}};
inline constexpr FixedFlag kNoQkNorm[] = {{"qk_layernorm", false}};
inline constexpr FixedFlag kGptFlags[] = {{"scale_attn_weights", true},
                                          {"scale_attn_by_inverse_layer_idx", false},
                                          {"add_cross_attention", false}};
inline constexpr FixedFlag kNoAlibi[] = {{"alibi", false}};

inline constexpr std::string_view kGptBuffers[] = {"attn.bias", "attn.masked_bias"};
inline constexpr std::string_view kGptNeoxBuffers[] = {"attention.bias", "attention.masked_bias",
                                                       "attention.rotary_emb.inv_freq"};
inline constexpr std::string_view kFalconBuffers[] = {"self_attention.rotary_emb.inv_freq"};
inline constexpr std::string_view kExaoneBuffers[] = {"attn.attention.rotary.inv_freq"};
/// add_xielu_keys() reads them.
inline constexpr std::string_view kApertusNumbers[] = {"mlp.act_fn.alpha_p", "mlp.act_fn.alpha_n",
                                                       "mlp.act_fn.beta", "mlp.act_fn.eps"};

inline constexpr std::string_view kPaddleOcrParts[] = {"mlp_AR.", "projector."};
inline constexpr std::string_view kHunyuanVlParts[] = {"vit."};

inline constexpr ConfigNames kGptNames = {.n_layer = "n_layer",
                                          .n_embd = "n_embd",
                                          .n_ff = "n_inner",
                                          .n_head = "n_head",
                                          .n_head_kv = "",
                                          .n_ctx = "n_positions",
                                          .eps = "layer_norm_epsilon"};

inline constexpr DenseTraits kGemmaTraits = {.eps = 1e-6, .head_dim = 256, .shares_output = true};
inline constexpr DenseTraits kGemma2Traits = {.eps = 1e-6,
                                              .head_dim = 256,
                                              .window = 4096,
                                              .windows = DenseWindows::patterned,
                                              .full_every = 2,
                                              .shares_output = true};
inline constexpr DenseTraits kSmollm3Traits = {.eps = 1e-6, .fixed = kNoSlidingWindow};
inline constexpr DenseTraits kGraniteTraits = {.eps = 1e-6};
inline constexpr DenseTraits kOlmo2Traits = {.needs_output = true};
inline constexpr DenseTraits kOlmo3Traits = {
    .window = 4096, .windows = DenseWindows::patterned, .full_every = 4, .needs_output = true};
inline constexpr DenseTraits kCohereTraits = {.names = {.eps = "layer_norm_eps"},
                                              .shares_output = true};
inline constexpr DenseTraits kCohere2Traits = {.names = {.eps = "layer_norm_eps"},
                                               .window = 4096,
                                               .windows = DenseWindows::patterned,
                                               .full_every = 4,
                                               .has_head_dim = false,
                                               .shares_output = true};
inline constexpr DenseTraits kMistral3Traits = {.windows = DenseWindows::all};
inline constexpr DenseTraits kMinistralTraits = {
    .eps = 1e-6, .window = 4096, .windows = DenseWindows::listed};
inline constexpr DenseTraits kCwmTraits = {
    .head_dim = 128, .needs_rope = true, .windows = DenseWindows::listed};
inline constexpr DenseTraits kStarcoder2Traits = {
    .names = {.eps = "norm_epsilon"}, .windows = DenseWindows::all, .names_activation = true};
inline constexpr DenseTraits kStableLmTraits = {.names = {.eps = "layer_norm_eps"},
                                                .rotated_share = 0.25,
                                                .has_head_dim = false,
                                                .rotates_part = true,
                                                .needs_output = true};
inline constexpr DenseTraits kPhiTraits = {.names = {.eps = "layer_norm_eps"},
                                           .rotated_share = 0.5,
                                           .rotates_part = true,
                                           .fixed = kNoQkNorm,
                                           .needs_output = true,
                                           .names_activation = true};
inline constexpr DenseTraits kGpt2Traits = {.names = kGptNames,
                                            .n_ctx = 1024,
                                            .has_head_dim = false,
                                            .positions = "wpe",
                                            .fixed = kGptFlags,
                                            .may_lack_root = true,
                                            .buffers = kGptBuffers,
                                            .names_activation = true};
inline constexpr DenseTraits kGptBigCodeTraits = kGpt2Traits;
inline constexpr DenseTraits kGptNeoxTraits = {
    .names = {.n_head_kv = "", .eps = "layer_norm_eps"},
    .older_names = {.theta = "rotary_emb_base", .rotated_share = "rotary_pct"},
    .rotated_share = 0.25,
    .has_head_dim = false,
    .rotates_part = true,
    .buffers = kGptNeoxBuffers,
    .needs_output = true,
    .names_activation = true};
inline constexpr DenseTraits kFalconTraits = {
    .names = {.n_ff = "ffn_hidden_size", .n_head_kv = "", .eps = "layer_norm_epsilon"},
    .n_ctx = 2048,
    .has_head_dim = false,
    .fixed = kNoAlibi,
    .buffers = kFalconBuffers,
    .names_activation = true};
inline constexpr DenseTraits kNemotronTraits = {
    .names = {.eps = "norm_eps"}, .rotated_share = 0.5, .rotates_part = true, .needs_output = true};
inline constexpr DenseTraits kArceeTraits = {};
inline constexpr DenseTraits kApertusTraits = {.needs_rope = true, .buffers = kApertusNumbers};
inline constexpr DenseTraits kBitnetTraits = {
    .shares_output = true, .names_activation = true, .gguf_activation = "silu"};
inline constexpr DenseTraits kPaddleOcrTraits = {
    .may_be_flat = true, .head_dim = 128, .has_sections = true, .other_parts = kPaddleOcrParts};
inline constexpr DenseTraits kHunyuanVlTraits = {
    .may_be_flat = true, .needs_rope = true, .other_parts = kHunyuanVlParts};
inline constexpr DenseTraits kGlmTraits = {
    .eps = 1.5625e-07, .rotated_share = 0.5, .head_dim = 128, .rotates_part = true};
inline constexpr DenseTraits kExaoneTraits = {
    .older_names = {.n_layer = "num_layers", .eps = "layer_norm_epsilon"},
    .older_activation_key = "activation_function",
    .buffers = kExaoneBuffers};

/// `llama` and `qwen2`: the layers of those.
constexpr auto dense_mappings(std::span<const TensorRow> llama, std::span<const TensorRow> qwen2) {
  std::array all = {
      GgufMapping{.architecture = "gemma",
                  .classes = kGemma,
                  .layer = kGemmaLayer,
                  .norms = Edit::add_one,
                  .ties_embeddings = true,
                  .activation = "gelu_pytorch_tanh",
                  .dense = &kGemmaTraits},
      GgufMapping{.architecture = "gemma2",
                  .classes = kGemma2,
                  .layer = kGemma2Layer,
                  .norms = Edit::add_one,
                  .ties_embeddings = true,
                  .activation = "gelu_pytorch_tanh",
                  .activation_key = "hidden_activation",
                  .dense = &kGemma2Traits},
      GgufMapping{.architecture = "smollm3",
                  .classes = kSmollm3,
                  .layer = llama,
                  .ties_embeddings = true,
                  .rope_theta = 2e6,
                  .dense = &kSmollm3Traits},
      GgufMapping{
          .architecture = "granite", .classes = kGranite, .layer = llama, .dense = &kGraniteTraits},
      GgufMapping{
          .architecture = "olmo2", .classes = kOlmo2, .layer = kOlmo2Layer, .dense = &kOlmo2Traits},
      GgufMapping{.architecture = "olmo2",
                  .classes = kOlmo3,
                  .layer = kOlmo2Layer,
                  .rope_theta = 5e5,
                  .dense = &kOlmo3Traits},
      GgufMapping{.architecture = "command-r",
                  .classes = kCohere,
                  .layer = kCohereLayer,
                  .layer_epsilon = true,
                  .ties_embeddings = true,
                  .rope_theta = 5e5,
                  .dense = &kCohereTraits},
      GgufMapping{.architecture = "cohere2",
                  .classes = kCohere2,
                  .layer = kCohereLayer,
                  .layer_epsilon = true,
                  .ties_embeddings = true,
                  .dense = &kCohere2Traits},
      GgufMapping{.architecture = "mistral3",
                  .classes = kMistral3,
                  .layer = llama,
                  .dense = &kMistral3Traits},
      GgufMapping{.architecture = "llama",
                  .classes = kMinistral,
                  .layer = llama,
                  .dense = &kMinistralTraits},
      GgufMapping{.architecture = "llama",
                  .classes = kCwm,
                  .layer = llama,
                  .rope_theta = 1e6,
                  .dense = &kCwmTraits},
      GgufMapping{.architecture = "starcoder2",
                  .classes = kStarcoder2,
                  .layer = kStarcoder2Layer,
                  .layer_norms = true,
                  .layer_epsilon = true,
                  .ties_embeddings = true,
                  .activation = "gelu_pytorch_tanh",
                  .dense = &kStarcoder2Traits},
      GgufMapping{.architecture = "stablelm",
                  .classes = kStableLm,
                  .layer = kStableLmLayer,
                  .layer_norms = true,
                  .layer_epsilon = true,
                  .dense = &kStableLmTraits},
      GgufMapping{.architecture = "phi2",
                  .classes = kPhi,
                  .layer = kPhiLayer,
                  .norm = "model.final_layernorm",
                  .layer_norms = true,
                  .layer_epsilon = true,
                  .activation = "gelu_pytorch_tanh",
                  .dense = &kPhiTraits},
      GgufMapping{.architecture = "gpt2",
                  .classes = kGpt2,
                  .layer = kGpt2Layer,
                  .root = "transformer",
                  .embeddings = "wte",
                  .norm = "transformer.ln_f",
                  .layer_norms = true,
                  .layer_epsilon = true,
                  .ties_embeddings = true,
                  .activation = "gelu_pytorch_tanh",
                  .activation_key = "activation_function",
                  .layers = "h",
                  .dense = &kGpt2Traits},
      GgufMapping{.architecture = "gptneox",
                  .classes = kGptNeox,
                  .layer = kGptNeoxLayer,
                  .root = "gpt_neox",
                  .embeddings = "embed_in",
                  .norm = "gpt_neox.final_layer_norm",
                  .layer_norms = true,
                  .layer_epsilon = true,
                  .activation = "gelu",
                  .output = "embed_out",
                  .dense = &kGptNeoxTraits},
      GgufMapping{.architecture = "falcon",
                  .classes = kFalcon,
                  .layer = kFalconLayer,
                  .root = "transformer",
                  .embeddings = "word_embeddings",
                  .norm = "transformer.ln_f",
                  .layer_norms = true,
                  .layer_epsilon = true,
                  .ties_embeddings = true,
                  .activation = "gelu",
                  .activation_key = "activation",
                  .layers = "h",
                  .dense = &kFalconTraits},
      GgufMapping{.architecture = "starcoder",
                  .classes = kGptBigCode,
                  .layer = kGptBigCodeLayer,
                  .root = "transformer",
                  .embeddings = "wte",
                  .norm = "transformer.ln_f",
                  .layer_norms = true,
                  .layer_epsilon = true,
                  .ties_embeddings = true,
                  .activation = "gelu_pytorch_tanh",
                  .activation_key = "activation_function",
                  .layers = "h",
                  .dense = &kGptBigCodeTraits},
      GgufMapping{.architecture = "nemotron",
                  .classes = kNemotron,
                  .layer = kNemotronLayer,
                  .norms = Edit::add_one,
                  .layer_norms = true,
                  .layer_epsilon = true,
                  .activation = "relu2",
                  .dense = &kNemotronTraits},
      GgufMapping{.architecture = "arcee",
                  .classes = kArcee,
                  .layer = kArceeLayer,
                  .activation = "relu2",
                  .dense = &kArceeTraits},
      GgufMapping{.architecture = "apertus",
                  .classes = kApertus,
                  .layer = kApertusLayer,
                  .activation = "xielu",
                  .rope_theta = 12e6,
                  .dense = &kApertusTraits},
      GgufMapping{.architecture = "bitnet",
                  .classes = kBitnet,
                  .layer = kBitnetLayer,
                  .activation = "relu2",
                  .rope_theta = 5e5,
                  .dense = &kBitnetTraits},
      GgufMapping{.architecture = "paddleocr",
                  .classes = kPaddleOcr,
                  .layer = qwen2,
                  .ties_embeddings = true,
                  .rope_theta = 5e5,
                  .dense = &kPaddleOcrTraits},
      GgufMapping{.architecture = "hunyuan_vl",
                  .classes = kHunyuanVl,
                  .layer = kHunyuanLayer,
                  .ties_embeddings = true,
                  .dense = &kHunyuanVlTraits},
      GgufMapping{
          .architecture = "chatglm", .classes = kGlm, .layer = kGlmLayer, .dense = &kGlmTraits},
      GgufMapping{.architecture = "exaone",
                  .classes = kExaone,
                  .layer = kExaoneLayer,
                  .root = "transformer",
                  .embeddings = "wte",
                  .norm = "transformer.ln_f",
                  .layers = "h",
                  .rope_theta = 5e5,
                  .dense = &kExaoneTraits},
  };
  for (GgufMapping& mapping : all) {
    mapping.read_own_sizes = read_dense_sizes;
    mapping.read_own = read_dense;
    mapping.add_own_keys = add_dense_keys;
  }
  return all;
}

}  // namespace snapkv::huggingface
