// SPDX-License-Identifier: MIT
// Rows of the table in gguf_mappings.cpp: dense models that have position biases in place of a
// rotation.
#pragma once

#include <array>
#include <string_view>

#include "huggingface/biased_config.h"
#include "huggingface/dense_config.h"
#include "huggingface/dense_traits.h"
#include "huggingface/gguf_mapping.h"

namespace snapkv::huggingface {

inline constexpr TensorRow kBloomLayer[] = {
    {"input_layernorm", "attn_norm", Size::embd},
    {"self_attention.query_key_value", "attn_qkv", Size::qkv, Size::embd, Edit::head_groups},
    {"self_attention.dense", "attn_output", Size::embd, Size::q},
    {"post_attention_layernorm", "ffn_norm", Size::embd},
    {"mlp.dense_h_to_4h", "ffn_up", Size::ff, Size::embd},
    {"mlp.dense_4h_to_h", "ffn_down", Size::embd, Size::ff},
};
inline constexpr TensorRow kBloomOthers[] = {
    {"word_embeddings_layernorm", "token_embd_norm", Size::embd},
};

inline constexpr TensorRow kMptLayer[] = {
    {"norm_1", "attn_norm", Size::embd},
    {"attn.Wqkv", "attn_qkv", Size::qkv, Size::embd},
    {"attn.out_proj", "attn_output", Size::embd, Size::q},
    {"norm_2", "ffn_norm", Size::embd},
    {"ffn.up_proj", "ffn_up", Size::ff, Size::embd},
    {"ffn.down_proj", "ffn_down", Size::embd, Size::ff},
};

/// The matrices are transposed. c_fc2 makes the gates.
inline constexpr TensorRow kJaisLayer[] = {
    {"ln_1", "attn_norm", Size::embd},
    {"attn.c_attn", "attn_qkv", Size::embd, Size::qkv, Edit::transposed},
    {"attn.c_proj", "attn_output", Size::q, Size::embd, Edit::transposed},
    {"ln_2", "ffn_norm", Size::embd},
    {"mlp.c_fc2", "ffn_gate", Size::embd, Size::ff, Edit::transposed},
    {"mlp.c_fc", "ffn_up", Size::embd, Size::ff, Edit::transposed},
    {"mlp.c_proj", "ffn_down", Size::ff, Size::embd, Edit::transposed},
};

inline constexpr std::string_view kBloom[] = {"BloomForCausalLM"};
/// As transformers calls the class, and as it is published.
inline constexpr std::string_view kMpt[] = {"MptForCausalLM", "MPTForCausalLM"};
inline constexpr std::string_view kJais[] = {"JAISLMHeadModel"};

inline constexpr FixedFlag kBloomFlags[] = {{"apply_residual_connection_post_layernorm", false}};
inline constexpr FixedFlag kJaisFlags[] = {{"scale_attn_weights", true},
                                           {"scale_attn_by_inverse_layer_idx", false},
                                           {"reorder_and_upcast_attn", false},
                                           {"add_cross_attention", false}};

inline constexpr std::string_view kJaisBuffers[] = {"attn.bias", "attn.masked_bias"};
/// check_jais_slopes() reads them.
inline constexpr std::string_view kJaisRootBuffers[] = {"relative_pe.slopes"};

inline constexpr DenseTraits kBloomTraits = {.names = {.n_layer = "n_layer",
                                                       .n_ff = "n_inner",
                                                       .n_head = "n_head",
                                                       .n_head_kv = "",
                                                       .n_ctx = "seq_length",
                                                       .eps = "layer_norm_epsilon"},
                                             .older_names = {.n_embd = "n_embed"},
                                             .n_ctx = 2048,
                                             .has_head_dim = false,
                                             .biased = true,
                                             .fixed = kBloomFlags,
                                             .may_lack_root = true};
inline constexpr DenseTraits kMptTraits = {.names = {.n_layer = "n_layers",
                                                     .n_embd = "d_model",
                                                     .n_head = "n_heads",
                                                     .n_ctx = "max_seq_len",
                                                     .eps = "layer_norm_epsilon"},
                                           .has_head_dim = false,
                                           .biased = true,
                                           .names_activation = true,
                                           .read_more = read_mpt};
inline constexpr DenseTraits kJaisTraits = {.names = {.n_layer = "n_layer",
                                                      .n_embd = "n_embd",
                                                      .n_ff = "n_inner",
                                                      .n_head = "n_head",
                                                      .n_head_kv = "",
                                                      .n_ctx = "n_positions",
                                                      .eps = "layer_norm_epsilon"},
                                            .has_head_dim = false,
                                            .biased = true,
                                            .fixed = kJaisFlags,
                                            .may_lack_root = true,
                                            .buffers = kJaisBuffers,
                                            .root_buffers = kJaisRootBuffers,
                                            .needs_output = true,
                                            .read_more = read_jais};

inline constexpr auto kBiasedMappings = [] {
  std::array all = {
      GgufMapping{.architecture = "bloom",
                  .classes = kBloom,
                  .layer = kBloomLayer,
                  .root = "transformer",
                  .embeddings = "word_embeddings",
                  .norm = "transformer.ln_f",
                  .layer_norms = true,
                  .layer_epsilon = true,
                  .ties_embeddings = true,
                  .activation = "gelu_pytorch_tanh",
                  .layers = "h",
                  .dense = &kBloomTraits,
                  .others = kBloomOthers},
      GgufMapping{.architecture = "mpt",
                  .classes = kMpt,
                  .layer = kMptLayer,
                  .root = "transformer",
                  .embeddings = "wte",
                  .norm = "transformer.norm_f",
                  .may_have_norm_biases = true,
                  .layer_epsilon = true,
                  .ties_embeddings = true,
                  .activation = "gelu",
                  .layers = "blocks",
                  .dense = &kMptTraits},
      GgufMapping{.architecture = "jais",
                  .classes = kJais,
                  .layer = kJaisLayer,
                  .root = "transformer",
                  .embeddings = "wte",
                  .norm = "transformer.ln_f",
                  .layer_norms = true,
                  .layer_epsilon = true,
                  .ties_embeddings = true,
                  .activation = "swiglu",
                  .activation_key = "activation_function",
                  .layers = "h",
                  .dense = &kJaisTraits},
  };
  for (GgufMapping& mapping : all) {
    mapping.read_own_sizes = read_dense_sizes;
    if (mapping.architecture == "mpt") mapping.read_own_sizes = read_mpt_sizes;
    mapping.read_own = read_dense;
    mapping.add_own_keys = add_dense_keys;
  }
  return all;
}();

}  // namespace snapkv::huggingface
