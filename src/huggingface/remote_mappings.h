// SPDX-License-Identifier: MIT
// Rows of the table in gguf_mappings.cpp: dense models whose folders bring their own Python code,
// as they are published. transformers does not have these classes.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "huggingface/dense_config.h"
#include "huggingface/dense_traits.h"
#include "huggingface/gguf_mapping.h"
#include "huggingface/remote_config.h"

namespace snapkv::huggingface {

/// The row, of one part of a matrix of queries, keys and values.
constexpr TensorRow of_part(Part part, TensorRow row) {
  row.part = part;
  return row;
}

inline constexpr TensorRow kInternLm2Layer[] = {
    {"attention_norm", "attn_norm", Size::embd},
    {"attention.wqkv", "attn_q", Size::qkv, Size::embd, Edit::queries_of_groups},
    {"attention.wqkv", "attn_k", Size::qkv, Size::embd, Edit::keys_of_groups},
    {"attention.wqkv", "attn_v", Size::qkv, Size::embd, Edit::values_of_groups},
    {"attention.wo", "attn_output", Size::embd, Size::q},
    {"ffn_norm", "ffn_norm", Size::embd},
    {"feed_forward.w1", "ffn_gate", Size::ff, Size::embd},
    {"feed_forward.w3", "ffn_up", Size::ff, Size::embd},
    {"feed_forward.w2", "ffn_down", Size::embd, Size::ff},
};

inline constexpr TensorRow kBaichuanLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    of_part(Part::queries, {"self_attn.W_pack", "attn_q", Size::qkv, Size::embd, Edit::permute_q}),
    of_part(Part::keys, {"self_attn.W_pack", "attn_k", Size::qkv, Size::embd, Edit::permute_k}),
    of_part(Part::values, {"self_attn.W_pack", "attn_v", Size::qkv, Size::embd}),
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

/// w2 makes the gates.
inline constexpr TensorRow kQwen1Layer[] = {
    {"ln_1", "attn_norm", Size::embd},
    {"attn.c_attn", "attn_qkv", Size::qkv, Size::embd},
    {"attn.c_proj", "attn_output", Size::embd, Size::q},
    {"ln_2", "ffn_norm", Size::embd},
    {"mlp.w2", "ffn_gate", Size::ff, Size::embd},
    {"mlp.w1", "ffn_up", Size::ff, Size::embd},
    {"mlp.c_proj", "ffn_down", Size::embd, Size::ff},
};

inline constexpr TensorRow kCodeShellLayer[] = {
    {"ln_1", "attn_norm", Size::embd},
    {"attn.c_attn", "attn_qkv", Size::qkv, Size::embd},
    {"attn.c_proj", "attn_output", Size::embd, Size::q},
    {"ln_2", "ffn_norm", Size::embd},
    {"mlp.c_fc", "ffn_up", Size::ff, Size::embd},
    {"mlp.c_proj", "ffn_down", Size::embd, Size::ff},
};

/// Neighbouring heads of queries have different heads of keys, which GGUF does not have.
inline constexpr TensorRow kPlamoLayer[] = {
    {"norm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd, Edit::head_turns},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q, Edit::head_turn_columns},
    {"mlp.gate_proj", "ffn_gate", Size::ff, Size::embd},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff},
};

/// Sizes differ by layer.
inline constexpr TensorRow kOpenElmLayer[] = {
    {"attn_norm", "attn_norm", Size::embd},
    {"attn.qkv_proj", "attn_qkv", Size::qkv, Size::embd},
    {"attn.q_norm", "attn_q_norm", Size::head_dim},
    {"attn.k_norm", "attn_k_norm", Size::head_dim},
    {"attn.out_proj", "attn_output", Size::embd, Size::q},
    {"ffn_norm", "ffn_norm", Size::embd},
    {"ffn.proj_1", "ffn_gate", Size::ff_twice, Size::embd, Edit::first_half},
    {"ffn.proj_1", "ffn_up", Size::ff_twice, Size::embd, Edit::second_half},
    {"ffn.proj_2", "ffn_down", Size::embd, Size::ff},
};

/// The network has one of two names.
inline constexpr TensorRow kMaincoderLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attn.q_proj", "attn_q", Size::q, Size::embd},
    {"self_attn.k_proj", "attn_k", Size::kv, Size::embd},
    {"self_attn.v_proj", "attn_v", Size::kv, Size::embd},
    {"self_attn.o_proj", "attn_output", Size::embd, Size::q},
    {"self_attn.q_norm", "attn_q_norm", Size::head_dim},
    {"self_attn.k_norm", "attn_k_norm", Size::head_dim},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.gate_proj", "ffn_gate", Size::ff, Size::embd, Edit::none, true},
    {"mlp.up_proj", "ffn_up", Size::ff, Size::embd, Edit::none, true},
    {"mlp.down_proj", "ffn_down", Size::embd, Size::ff, Edit::none, true},
    {"feed_forward.gate_proj", "ffn_gate", Size::ff, Size::embd, Edit::none, true},
    {"feed_forward.up_proj", "ffn_up", Size::ff, Size::embd, Edit::none, true},
    {"feed_forward.down_proj", "ffn_down", Size::embd, Size::ff, Edit::none, true},
};

inline constexpr TensorRow kChatGlmLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attention.query_key_value", "attn_qkv", Size::qkv, Size::embd},
    {"self_attention.dense", "attn_output", Size::embd, Size::q},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.dense_h_to_4h", "ffn_up", Size::ff_twice, Size::embd},
    {"mlp.dense_4h_to_h", "ffn_down", Size::embd, Size::ff},
};

inline constexpr std::string_view kInternLm2[] = {"InternLM2ForCausalLM"};
inline constexpr std::string_view kBaichuan[] = {"BaichuanForCausalLM", "BaiChuanForCausalLM"};
inline constexpr std::string_view kMiniCpm[] = {"MiniCPMForCausalLM"};
inline constexpr std::string_view kOrion[] = {"OrionForCausalLM"};
inline constexpr std::string_view kXverse[] = {"XverseForCausalLM"};
inline constexpr std::string_view kQwen1[] = {"QWenLMHeadModel"};
inline constexpr std::string_view kCodeShell[] = {"CodeShellForCausalLM"};
inline constexpr std::string_view kPlamo[] = {"PlamoForCausalLM"};
inline constexpr std::string_view kOpenElm[] = {"OpenELMForCausalLM"};
inline constexpr std::string_view kMaincoder[] = {"MaincoderForCausalLM"};
inline constexpr std::string_view kPangu[] = {"PanguEmbeddedForCausalLM"};
inline constexpr std::string_view kChatGlm[] = {"ChatGLMModel", "ChatGLMForConditionalGeneration"};

inline constexpr FixedFlag kNoBias[] = {{"bias", false}};
inline constexpr FixedFlag kNoAttentionBias[] = {{"attention_bias", false}};
inline constexpr FixedFlag kPanguFlags[] = {{"bias", true}};
inline constexpr FixedFlag kQwen1Flags[] = {{"no_bias", true}, {"scale_attn_weights", true}};
inline constexpr FixedFlag kCodeShellFlags[] = {{"scale_attn_weights", true}};
inline constexpr FixedFlag kOpenElmFlags[] = {{"ffn_with_glu", true},
                                              {"normalize_qk_projections", true},
                                              {"share_input_output_layers", true}};
inline constexpr FixedFlag kMaincoderFlags[] = {{"attention_bias", false}, {"use_qk_norm", true}};
inline constexpr FixedFlag kChatGlmFlags[] = {{"rmsnorm", true},
                                              {"post_layer_norm", true},
                                              {"original_rope", true},
                                              {"add_bias_linear", false},
                                              {"apply_residual_connection_post_layernorm", false}};

inline constexpr std::string_view kInternLm2Buffers[] = {"attention.rotary_emb.inv_freq"};
inline constexpr std::string_view kQwen1Buffers[] = {"attn.masked_bias"};
inline constexpr std::string_view kCodeShellBuffers[] = {"attn.rotary_emb.inv_freq", "attn.bias",
                                                         "attn.masked_bias"};
inline constexpr std::string_view kQwen1RootBuffers[] = {"rotary_emb.inv_freq"};
inline constexpr std::string_view kChatGlmRootBuffers[] = {"rotary_pos_emb.inv_freq"};

inline constexpr DenseTraits kInternLm2Traits = {.has_head_dim = false,
                                                 .ignores_dynamic = true,
                                                 .fixed = kNoBias,
                                                 .buffers = kInternLm2Buffers,
                                                 .needs_output = true};
inline constexpr DenseTraits kBaichuanTraits = {.names = {.n_head_kv = ""},
                                                .older_names = {.n_ctx = "model_max_length"},
                                                .eps = 1e-6,
                                                .has_head_dim = false,
                                                .needs_output = true,
                                                .read_more = read_baichuan};
inline constexpr DenseTraits kMiniCpmTraits = {.has_head_dim = false,
                                               .ignores_dynamic = true,
                                               .fixed = kNoAttentionBias,
                                               .read_more = read_minicpm,
                                               .add_more_keys = add_minicpm_keys};
inline constexpr DenseTraits kOrionTraits = {.has_head_dim = false,
                                             .ignores_dynamic = true,
                                             .fixed = kNoAttentionBias,
                                             .needs_output = true};
inline constexpr DenseTraits kXverseTraits = {
    .eps = 1e-6, .has_head_dim = false, .ignores_dynamic = true, .needs_output = true};
inline constexpr DenseTraits kQwen1Traits = {.names = {.n_head_kv = "",
                                                       .eps = "layer_norm_epsilon",
                                                       .theta = "rotary_emb_base",
                                                       .rotated_share = "rotary_pct"},
                                             .eps = 1e-6,
                                             .has_head_dim = false,
                                             .fixed = kQwen1Flags,
                                             .buffers = kQwen1Buffers,
                                             .root_buffers = kQwen1RootBuffers,
                                             .needs_output = true,
                                             .read_more = read_qwen1,
                                             .add_more_keys = add_qwen1_keys};
inline constexpr DenseTraits kCodeShellTraits = {.names = {.n_layer = "n_layer",
                                                           .n_embd = "n_embd",
                                                           .n_ff = "n_inner",
                                                           .n_head = "n_head",
                                                           .n_head_kv = "num_query_groups",
                                                           .n_ctx = "n_positions",
                                                           .eps = "layer_norm_epsilon"},
                                                 .has_head_dim = false,
                                                 .fixed = kCodeShellFlags,
                                                 .buffers = kCodeShellBuffers,
                                                 .needs_output = true,
                                                 .read_more = check_codeshell};
inline constexpr DenseTraits kPlamoTraits = {
    .eps = 1e-6, .has_head_dim = false, .needs_output = true};
inline constexpr DenseTraits kOpenElmTraits = {.names = {.theta = "rope_freq_constant"},
                                               .fixed = kOpenElmFlags,
                                               .shares_output = true,
                                               .read_more = check_openelm,
                                               .add_more_keys = add_openelm_keys};
inline constexpr DenseTraits kMaincoderTraits = {.fixed = kMaincoderFlags};
inline constexpr DenseTraits kPanguTraits = {.fixed = kPanguFlags};
inline constexpr DenseTraits kChatGlmTraits = {.names = {.n_layer = "num_layers",
                                                         .n_ff = "ffn_hidden_size",
                                                         .n_head_kv = "",
                                                         .n_ctx = "seq_length",
                                                         .n_vocab = "padded_vocab_size",
                                                         .eps = "layernorm_epsilon"},
                                               .rotated_share = 0.5,
                                               .has_head_dim = false,
                                               .rotates_part = true,
                                               .fixed = kChatGlmFlags,
                                               .root_buffers = kChatGlmRootBuffers,
                                               .read_more = read_chatglm};

/// `llama` and `qwen2`: the layers of those.
constexpr auto remote_mappings(std::span<const TensorRow> llama, std::span<const TensorRow> qwen2) {
  std::array all = {
      GgufMapping{.architecture = "internlm2",
                  .classes = kInternLm2,
                  .layer = kInternLm2Layer,
                  .embeddings = "tok_embeddings",
                  .output = "output",
                  .dense = &kInternLm2Traits},
      GgufMapping{.architecture = "baichuan",
                  .classes = kBaichuan,
                  .layer = kBaichuanLayer,
                  .dense = &kBaichuanTraits},
      GgufMapping{.architecture = "minicpm",
                  .classes = kMiniCpm,
                  .layer = llama,
                  .ties_embeddings = true,
                  .dense = &kMiniCpmTraits},
      GgufMapping{.architecture = "orion",
                  .classes = kOrion,
                  .layer = qwen2,
                  .layer_norms = true,
                  .layer_epsilon = true,
                  .dense = &kOrionTraits},
      GgufMapping{
          .architecture = "xverse", .classes = kXverse, .layer = llama, .dense = &kXverseTraits},
      GgufMapping{.architecture = "qwen",
                  .classes = kQwen1,
                  .layer = kQwen1Layer,
                  .root = "transformer",
                  .embeddings = "wte",
                  .norm = "transformer.ln_f",
                  .layers = "h",
                  .dense = &kQwen1Traits},
      GgufMapping{.architecture = "codeshell",
                  .classes = kCodeShell,
                  .layer = kCodeShellLayer,
                  .root = "transformer",
                  .embeddings = "wte",
                  .norm = "transformer.ln_f",
                  .layer_norms = true,
                  .layer_epsilon = true,
                  .ties_embeddings = true,
                  .activation = "gelu_pytorch_tanh",
                  .activation_key = "activation_function",
                  .layers = "h",
                  .dense = &kCodeShellTraits},
      GgufMapping{.architecture = "plamo",
                  .classes = kPlamo,
                  .layer = kPlamoLayer,
                  .layers = "layers.layers",
                  .dense = &kPlamoTraits},
      GgufMapping{.architecture = "openelm",
                  .classes = kOpenElm,
                  .layer = kOpenElmLayer,
                  .root = "transformer",
                  .embeddings = "token_embeddings",
                  .norm = "transformer.norm",
                  .ties_embeddings = true,
                  .activation_key = "activation_fn_name",
                  .dense = &kOpenElmTraits},
      GgufMapping{.architecture = "maincoder",
                  .classes = kMaincoder,
                  .layer = kMaincoderLayer,
                  .dense = &kMaincoderTraits},
      GgufMapping{.architecture = "pangu-embedded",
                  .classes = kPangu,
                  .layer = qwen2,
                  .dense = &kPanguTraits},
      GgufMapping{.architecture = "chatglm",
                  .classes = kChatGlm,
                  .layer = kChatGlmLayer,
                  .root = "transformer",
                  .embeddings = "embedding.word_embeddings",
                  .norm = "transformer.encoder.final_layernorm",
                  .layers = "encoder.layers",
                  .output = "transformer.output_layer",
                  .dense = &kChatGlmTraits},
  };
  for (GgufMapping& mapping : all) {
    mapping.read_own_sizes = read_dense_sizes;
    if (mapping.architecture == "openelm") mapping.read_own_sizes = read_openelm_sizes;
    if (mapping.architecture == "plamo") mapping.read_own_sizes = read_plamo_sizes;
    if (mapping.architecture == "qwen") mapping.read_own_sizes = read_qwen1_sizes;
    if (mapping.architecture == "chatglm") mapping.read_own_sizes = read_chatglm_sizes;
    mapping.read_own = read_dense;
    mapping.add_own_keys = add_dense_keys;
  }
  return all;
}

}  // namespace snapkv::huggingface
