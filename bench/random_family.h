// SPDX-License-Identifier: MIT
// RandomFamily: how a random model differs from Llama: metadata and tensors under llama.cpp's
// names. They are written here again rather than taken from src/model, so that a real llama.cpp
// checks both.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace snapkv {

/// Norms of queries and keys: none, one weight for all heads, a weight for each head, one norm over
/// all heads of a token, a factor for each head of queries alone.
enum class RandomQkNorm { none, each_head, own_weights, all_together, query_gains };

/// An additional metadata key, without the architecture's name.
struct RandomKey {
  std::string name;
  std::variant<int64_t, double, bool, std::string> value;
};

/// What a layer has where layers differ. Without heads it has no attention, with heads of queries
/// alone a matrix in its place, and with a width of 0 no feed-forward network.
struct RandomLayerSizes {
  int64_t n_head = 0, n_head_kv = 0, n_ff = 0;
};

/// The defaults are Llama's.
struct RandomFamily {
  std::string architecture = "llama";
  int64_t n_rot = 0;  // 0: head_dim
  bool layer_norm = false, norm_bias = false;
  bool plain_norms = false;  // without tensors
  bool rms_epsilon = false;  // whether the header names the number of layer norms as RMS norms'
  bool norm_before = true, norm_after = false;
  bool ffn_norm = true;
  bool sub_norms = false;  // attn_sub_norm, ffn_sub_norm: before the last matrix of each part
  RandomQkNorm qk_norm = RandomQkNorm::none;
  bool qk_norm_bias = false;     // of own_weights
  bool adds_embeddings = false;  // layer_output_scale: of the embeddings that each layer adds
  bool qkv_bias = false, output_bias = false, ffn_bias = false;
  bool counts_both = false;  // .feed_forward_length is twice n_ff
  bool fused_qkv = false, gated = true, fused_gate = false;
  bool own_output = false, output_has_bias = false;
  bool second_norm = false;     // attn_norm_2: attention's, attn_norm being the network's beside it
  bool embedding_norm = false;  // token_embd_norm
  bool rope_freqs = false, long_factors = false, learned_positions = false;
  bool sinks = false;           // attn_sinks: a score of each head
  bool attention_gate = false;  // attn_gate: a matrix of gates of what attention gives
  bool head_gates = false;      // the same with one gate for each head
  /// .swiglu_clamp_exp and .swiglu_clamp_shexp, [n_layer]; empty: none
  std::vector<float> expert_limits = {}, shared_limits = {};
  bool matrix_scales = false;               // a number for each matrix of attention and networks
  bool xielu = false;                       // numbers of each layer's xIELU
  bool bare_ffn_norm = false;               // ffn_norm's name has no ".weight" at its end
  bool bare_post_norms = false;             // nor have those of the norms after the blocks
  bool ffn_norm_is_post_attention = false;  // the norm before the network is post_attention_norm
  bool ffn_norm_is_attn_output = false;     // it is attn_output_norm
  int64_t n_expert = 0, n_expert_used = 0;  // 0: no experts
  bool expert_bias = false;                 // of the router and of every expert
  bool fused_experts = false;               // one tensor for their gates and ups
  bool merged_experts = true;               // one tensor for all of a layer, else one for each
  bool choice_bias = false;                 // exp_probs_b: of the experts' choice only
  bool bare_choice_bias = false;            // its name has no ".bias" at its end
  int64_t n_ff_dense = 0;                   // > 0: .feed_forward_length, and n_ff is of an expert
  int64_t n_dense_layers = 0;               // the first ones, without experts, n_ff_dense wide
  bool names_dense_layers = true;           // whether the header says how many these are
  int64_t n_ff_shared = 0;                  // > 0: width of an expert that every token passes
  int64_t n_latent = 0;                     // > 0: values that experts work on, fewer than n_embd
  int64_t n_shared = 0;                     // > 0: the header says this, not n_ff_shared
  int64_t expert_step = 0;                  // > 0: only the last of so many layers has experts
  bool fused_shared_gate = false;           // ffn_up_shexp holds its gate too
  bool shared_gate = false;                 // whether each token has a factor for it
  /// Arctic: a dense network as wide as the model in each layer, and experts with a norm of their
  /// own.
  bool early_experts = false;
  /// Grok: norms after the blocks have its names. With n_ff_dense a dense network stands beside the
  /// experts.
  bool grok = false;
  /// GroveMoE: so many experts share a smaller one, of this width.
  int64_t n_adjugate_group = 0, n_ff_adjugate = 0;
  /// > 0: layers that are not among attention_layers have a short convolution of so many tokens.
  int64_t conv_kernel = 0;
  std::vector<int64_t> attention_layers = {};
  /// Linear attention by the gated delta rule in all but every fourth layer; attention's output
  /// then has a gate.
  struct DeltaNet {
    int64_t n_head_k = 0, n_head = 0;  // of keys, of values; 0: no such layers
    int64_t head_dim = 0;              // of keys and of values
    bool joined_gates = false;         // ssm_ba, else ssm_beta and ssm_alpha
  };
  DeltaNet delta_net = {};
  /// Kimi Delta Attention in all but every fourth layer, with n_head heads.
  struct KimiDelta {
    int64_t head_dim = 0;  // of keys and of values; 0: no such layers
    int64_t conv_kernel = 4;
    bool joined_qkv = false;  // one matrix for queries, keys and values
    double log_floor = 0.0;   // below 0: of the decays; these and gates have one matrix each
  };
  KimiDelta kimi_delta = {};
  /// Mixers of Mamba-2 in the layers that have an M in `pattern`. There * is attention, + both side
  /// by side and, if each layer is only one part (`parts_apart`), - a feed-forward network.
  struct Mamba2 {
    int64_t n_group = 0, n_head = 0;  // 0: no such layers
    int64_t d_state = 0, d_head = 0;
    std::string pattern = {};  // [n_layer]
    bool parts_apart = false;
    bool normed = true;  // ssm_norm
  };
  Mamba2 mamba2 = {};
  /// Mixers of Mamba in the layers that have an m in `pattern`. There * is attention.
  struct Mamba {
    int64_t n_channel = 0;  // 0: no such layers
    int64_t d_state = 0;
    int64_t step_rank = 0;
    std::string pattern = {};  // [n_layer]
    bool normed = true;        // ssm_dt_norm, ssm_b_norm, ssm_c_norm
    int64_t n_head = 0;        // > 0: PLaMo 2's, whose heads have a state each
    bool alone = false;        // whether no feed-forward networks follow
    /// Which layers have experts if the model has some; others have a network as wide as one.
    std::vector<int64_t> expert_layers = {};
  };
  Mamba mamba = {};
  /// Mixers of RWKV in all layers.
  struct Rwkv {
    int version = 0;  // 6 or 7; 0: no such layers
    int64_t head_dim = 0;
    int64_t decay_rank = 0;
    int64_t mix_rank = 0;                                  // of 6
    int64_t rate_rank = 0, value_rank = 0, gate_rank = 0;  // of 7; gate_rank 0: no gates
    bool in_qwen = false;       // gated networks and RMS norms, and 6 is gated linear attention
    bool normed = true;         // time_mix_ln
    int64_t n_head_kv = 0;      // of 6 in Qwen; 0: as many as heads
    bool qkv_bias = false;      // the same
    bool mixes_apart = false;   // a tensor for each mix of 6
    int64_t rescale_every = 0;  // of 6
    int64_t n_lerp = 0;         // mixes in time_mix_lerp_fused of 7; 0: as many as there are inputs
  };
  Rwkv rwkv = {};
  /// Multi-head latent attention in all layers, or in those without Kimi Delta Attention. n_rot is
  /// the part of a key that all heads share; head_dim says nothing then.
  struct Latent {
    int64_t rank = 0;                      // 0: no such layers
    int64_t q_rank = 0;                    // 0: queries are made of n_embd values
    int64_t n_unrotated = 0, n_value = 0;  // of a head's key, its value
    bool joined = false;      // one matrix for keys and values, and a header as before April 2025
    bool names_value = true;  // whether the header has the width of a value
    int64_t n_index_head = 0, d_index = 0, top_k = 0;  // of an indexer; 0: there is none
    std::vector<int64_t> index_layers = {};            // that have one; empty: all
  };
  Latent latent = {};
  /// Gemma 4: all but every full_every-th layer have windows, and heads of another size. Layers
  /// without a window rotate a quarter of the pairs.
  struct Gemma4 {
    int64_t full_every = 0;        // 0: no such layers
    int64_t head_dim_window = 0;   // where there is a window; head_dim is that of other layers
    int64_t n_head_kv_full = 0;    // where there is none
    int64_t n_shared = 0;          // of the last layers, which have no keys and values of their own
    int64_t n_layer_input = 0;     // > 0: width of the inputs of each layer
    bool keys_are_values = false;  // in layers without a window
    bool has_window(int64_t il) const { return (il + 1) % full_every != 0; }
  };
  Gemma4 gemma4 = {};
  /// Gemma 3n: all but every fifth layer have windows; tokens have several residual streams.
  struct Gemma3n {
    int64_t n_streams = 0;      // 0: no such model
    int64_t n_shared = 0;       // of the last layers, which have keys and values that nothing uses
    int64_t n_layer_input = 0;  // width of the inputs of each layer
    int64_t rank = 0;           // of the matrices beside attention
    int64_t n_sparse = 0;       // of the first layers, whose gates must stand out
    double peaks = 0.0;         // by so many deviations
    int64_t active = 0;         // .altup.active_idx
    bool has_window(int64_t il) const { return (il + 1) % 5 != 0; }
  };
  Gemma3n gemma3n = {};
  std::vector<RandomLayerSizes> layer_sizes = {};  // [n_layer]; empty: all are RandomModelShape's
  int64_t n_draft_layer = 0;                // layers after the others that guess further tokens
  bool sections = false;                    // .rope.dimension_sections, of models that see pictures
  std::vector<int64_t> window_layers = {};  // that have a window, where not all have one
  bool window_sinks = false;                // whether these have sinks
  std::vector<bool> rotated_layers = {};    // .attention.rope_pattern; empty: all are
  int64_t value_dim = 0;                    // of a head's value; 0: head_dim
  int64_t window = 0;                       // .attention.sliding_window; 0: none
  std::vector<RandomKey> keys = {};
};

/// Standard deviations of weights that make every feature of a small model matter: attention is far
/// from uniform, and logits differ. Those of matrices are multiplied by 1 / sqrt(n_in).
struct RandomGains {
  float embedding = 0.35f;  // of the embeddings themselves
  float positions = 1.0f;   // of learned positions
  float output = 3.0f;
  float qkv = 1.3f;
  float attention_output = 1.2f;
  float ffn = 1.2f;
  float router = 1.5f;
  float indexer = 1.5f;
  float streams = 0.12f;     // of how residual streams are mixed
  float delta_rate = 0.5f;   // of how fast a state forgets
  float scan_inputs = 1.5f;  // of what a mixer of Mamba makes steps, B and C
  float scan_skip = 0.7f;    // of what a mixer of Mamba-2 lets pass beside its state
  float delta_gates = 0.8f;  // what decides when it forgets and learns
  float sinks = 2.0f;
  float bias = 0.4f;           // of biases
  float norm = 0.2f;           // of norms around 1, and of their biases
  float qk_norm = 1.4f;        // mean of norms of queries and keys
  float ffn_post_norm = 1.0f;  // mean of the norm after the feed-forward network
};

}  // namespace snapkv
