// SPDX-License-Identifier: MIT
// LayerSpec: what the engine must know about a layer to compute it, keep its cache and plan its
// memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "backend/ops.h"
#include "cache/layer_state.h"
#include "model/family.h"
#include "model/rotation.h"
#include "snapkv/model_info.h"

namespace snapkv {

/// A layer's index and their number, counting only the layers that policies choose rows of. This is
/// what a policy knows as il and n_layer.
struct PolicyLayer {
  int il = 0;
  int n_layer = 0;
};

/// Sizes of linear attention by the gated delta rule (DeltaRule), as DeltaNetMixer and
/// KimiDeltaMixer compute it.
struct DeltaNetSpec {
  int64_t n_head_k = 0;          // of queries and keys; divides n_head
  int64_t n_head = 0;            // of values
  int64_t d_k = 0, d_v = 0;      // of a key, of a value
  bool keys_take_turns = false;  // DeltaRule::keys_take_turns
  // of KimiDeltaMixer
  bool low_rank = true;    // whether decays and gates are made by two matrices each
  float log_floor = 0.0f;  // DeltaRule::log_floor

  /// Values of a token's queries, keys and values.
  int64_t n_qkv() const { return 2 * n_head_k * d_k + n_head * d_v; }
};

/// Sizes of a mixer of Mamba-2 (SelectiveScan), or of MambaHeadsMixer.
struct Mamba2Spec {
  int64_t n_group = 0;              // of B and C; divides n_head
  int64_t n_head = 0;               // of states
  int64_t d_state = 0, d_head = 0;  // rows of a head's state, and columns
  bool normed = true;               // whether what it gives has a norm
  int64_t step_rank = 0;            // of `mamba_heads`: values of which the steps are made

  /// Values of a token's x, and of x, B and C.
  int64_t n_values() const { return n_head * d_head; }
  int64_t n_xbc() const { return n_values() + 2 * n_group * d_state; }
};

/// Norms of what a mixer of Mamba makes its steps, B and C of: none, with weights of their own, or
/// without weights.
enum class ScanNorms { none, weighted, plain };

/// Sizes of a mixer of Mamba (ChannelScan).
struct MambaSpec {
  int64_t n_channel = 0;
  int64_t d_state = 0;    // values of a channel's state
  int64_t step_rank = 0;  // values of which the steps of all channels are made
  ScanNorms norms = ScanNorms::none;
  float norm_eps = 0.0f;  // of norms without weights; 0: ModelConfig::norm_eps
};

/// Sizes of a mixer of RWKV (Wkv).
struct RwkvSpec {
  WkvRule rule = WkvRule::rwkv7;
  int64_t n_head = 0, head_dim = 0;
  int64_t n_head_kv = 0;   // of keys and values; divides n_head
  int64_t decay_rank = 0;  // values of which all decays are made
  int64_t mix_rank = 0;    // rwkv6: of which a token's mixes with the last one are made
  // rwkv7
  int64_t rate_rank = 0;   // values of which the rates at which keys are replaced are made
  int64_t value_rank = 0;  // of which gates of the first layer's values are made
  int64_t gate_rank = 0;   // of which gates of what comes out are made; 0: there are none

  int64_t width() const { return n_head * head_dim; }
};

/// What results of a layer's matrices are multiplied by (muP, arXiv 2203.03466). All are 1 in files
/// that have these factors in the matrices.
struct LayerFactors {
  float attention_out = 1.0f;
  float gate = 1.0f, down = 1.0f;  // of the feed-forward network
  float sum = 1.0f;                // of what the network's parts add up to, before its norm
  // of a mixer of Mamba-2
  float mixer_gate = 1.0f, mixer_x = 1.0f, mixer_b = 1.0f, mixer_c = 1.0f, mixer_step = 1.0f;
  float mixer_out = 1.0f;
};

/// Sizes of an indexer (TokenIndexer), which chooses the tokens that a query attends to.
struct IndexSpec {
  int64_t n_head = 0;     // of its queries; 0: there is none
  int64_t head_dim = 0;   // of these, and of its key
  int64_t top_k = 0;      // tokens that a query attends to where it sees more
  RotationSpec rotation;  // of the first values of both

  explicit operator bool() const { return n_head > 0; }
};

/// Sizes of multi-head latent attention (LatentAttention). Its state has one head, whose rows are
/// the part of the keys that all heads share, the key of the indexer, if there is one, and then
/// `rank` values of which each head makes the rest of its keys, and its values.
struct LatentSpec {
  int64_t rank = 0;      // head_dim_v of the state
  int64_t n_shared = 0;  // values of a key that all heads share; rotated if the layer rotates
  int64_t n_own = 0;     // values of a head's key that are made of `rank` ones
  int64_t n_value = 0;   // of a head's value
  int64_t q_rank = 0;    // values of which all queries are made; 0: they are made of n_embd ones
  bool joined = false;   // whether the file has one matrix for keys and values of all heads
  bool gated = false;    // whether what each head gives has a gate, attn_gate
  IndexSpec index;

  int64_t n_key() const { return n_shared + n_own; }
};

/// The numbers of ops::xielu.
struct XieluSpec {
  float alpha_p = 0.0f, alpha_n = 0.0f;
  float beta = 0.0f;
  float eps = 0.0f;
};

/// Small experts of which every expert of a group of neighbours has the same one. A token passes an
/// expert's adjugate too, with the expert's weight times `factor` (arXiv 2508.07785).
struct AdjugateSpec {
  int64_t n_ff = 0;     // values between the matrices of one; 0: there are none
  int64_t n_group = 0;  // experts that share one; divides n_expert
  float factor = 1.0f;
};

/// A part of a layer's feed-forward network.
struct FeedForwardPart {
  FeedForwardKind kind = FeedForwardKind::dense;
  int64_t n_ff = 0;      // values between its matrices; of experts, those of one
  int64_t n_latent = 0;  // values that experts read and give, between two more matrices; 0: n_embd
  bool token_gate = false;      // whether each token has a factor for its result: sigmoid(w . x)
  XieluSpec xielu = {};         // where Family::xielu
  GateLimits limits = {};       // where Family::limits_gates
  bool beside = false;          // whether it reads and computes beside another part (SideFfn)
  bool early = false;           // whether it reads what the layer reads, not what attention adds to
  bool in_sum = false;          // whether the sum of all parts has a norm, not this one (SumFfn)
  AdjugateSpec adjugates = {};  // of experts
  /// ops::keep_peaks of the gates; -infinity: they stay as they are.
  float peaks = -std::numeric_limits<float>::infinity();
};

/// Linear position biases of scores (ALiBi): slope * (position of the key - that of the query).
/// They are part of the dot product: keys have `n_values` more values, which hold their position,
/// and queries as many, which hold the head's slope.
struct PositionBiasSpec {
  static constexpr int64_t kMostTokens = int64_t{1} << 24;  // whose positions keys can hold

  float max_bias = 0.0f;  // slopes of n heads, a power of two: 2^(-max_bias * h / n), h from 1 to n
  int64_t n_values = 0;   // the last ones of state.head_dim_k; 0: there are no biases

  explicit operator bool() const { return n_values > 0; }
};

struct LayerSpec {
  TokenMixerKind mixer = TokenMixerKind::attention;
  AttentionKind attention = AttentionKind::full;
  int64_t n_head = 0;     // of queries; state.n_head is that of keys and values
  int64_t window = 0;     // tokens that a query sees through a sliding window, its own included,
                          // or those of a chunk
  float scale = 1.0f;     // of the scores
  float softcap = 0.0f;   // of the scores; 0: none
  RotationSpec rotation;  // of queries and keys
  PositionBiasSpec position_bias;  // in place of the rotation
  bool plain_qk_norm = false;      // whether these are normed without weights
  bool has_temperature = true;     // whether ModelConfig::temperature scales queries
  bool compressed = true;          // whether a policy chooses among the rows of its state
  PolicyLayer place;               // among the layers where it does
  /// Whether the matrix of the queries also computes, after each head's query, a gate for what the
  /// head's attention gives (arXiv 2505.06708).
  bool output_gate = false;
  int64_t conv_kernel = 0;    // of a short convolution: tokens that it sees, its own included
  DeltaNetSpec delta_net;     // of linear attention
  MambaSpec mamba;            // of a mixer of Mamba
  Mamba2Spec mamba2;          // of a mixer of Mamba-2, by itself or beside attention
  RwkvSpec rwkv;              // of a mixer of RWKV
  float stream_scale = 1.0f;  // of the residual stream after the layer
  LayerFactors factors;       // those of queries, keys and values are in `scale` and attention_out
  LatentSpec latent;          // of latent attention
  int64_t laurel_rank = 0;    // of AltUpLayer, where tokens have several streams
  StateShape state;           // what it remembers of a sequence
  int source = -1;            // with state.shared: the earlier layer whose rows it reads
  bool has_ffn = true;        // whether a feed-forward network follows
  std::vector<FeedForwardPart> ffn;  // whose results are added; the first is the main one

  /// Number of rows that a query at position n_tokens - 1 sees.
  int64_t visible_rows(int64_t n_tokens) const {
    if (attention == AttentionKind::none || n_tokens == 0) return 0;
    if (attention == AttentionKind::chunked) return (n_tokens - 1) % window + 1;
    return attention == AttentionKind::sliding_window ? std::min(n_tokens, window) : n_tokens;
  }
  /// Values of a head's query and key that matrices make.
  int64_t head_width() const { return state.head_dim_k - position_bias.n_values; }
  int64_t n_q() const { return n_head * state.head_dim_k; }        // values of a token's queries
  int64_t n_k() const { return state.n_head * state.head_dim_k; }  // of its keys
  int64_t n_v() const { return state.n_head * state.head_dim_v; }  // of its values
  int64_t n_out() const { return n_head * state.head_dim_v; }      // of what attention computes
  /// Bytes that the layer's state takes after n tokens if no policy chooses among its rows.
  size_t full_bytes(DType kv_type, int64_t n_tokens) const {
    return state.bytes(kv_type, visible_rows(n_tokens));
  }
  /// Without sinks, which are weights: Architecture::variant() has them.
  AttentionVariant variant() const {
    return {.window = attention == AttentionKind::sliding_window ? window : 0, .softcap = softcap};
  }
};

}  // namespace snapkv
