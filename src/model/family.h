// SPDX-License-Identifier: MIT
// Family: how a family of decoders differs from Llama, one row per general.architecture. The rows
// are in families.cpp; model_spec.cpp, decoder_weights.cpp, decoder.cpp and blocks/ read them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "backend/ops.h"

namespace snapkv {

class GgufFile;
class MetadataReader;
struct ModelSpec;

/// Whether a tensor must be in the file. An optional one is used if it is there.
enum class Presence { optional, required };

enum class NormKind {
  rms,    // x / rms(x) * weight (arXiv 1910.07467)
  layer,  // (x - mean) / deviation * weight + bias (arXiv 1607.06450)
};

/// What lets the tokens of a layer see earlier ones (blocks/block.h).
enum class TokenMixerKind {
  attention,
  short_conv,   // a short convolution with gates, which remembers the last inputs
  delta_net,    // linear attention by the gated delta rule, which remembers a matrix for each head
  kimi_delta,   // the same with a decay for each channel of a head's keys
  latent,       // attention whose heads share one compressed row for each token
  mamba,        // a scan of a state for each channel, whose values decay at different paces
  mamba2,       // a scan of a state for each head, which each token lets decay and adds to
  mamba_heads,  // the same, where B, C and steps are made of the values, as in `mamba`
  rwkv6,  // a matrix of each head, whose rows decay at their own paces; mixes tokens with the last
  rwkv7,  // the same, which replaces what it holds for a key
  attention_and_mamba2,  // attention and `mamba2` side by side
  linear,                // nothing, and the layer has a matrix in place of attention
  none,                  // nothing: the layer is only a feed-forward network
};

/// A part of a layer's feed-forward network, which adds up what its parts compute.
enum class FeedForwardKind {
  dense,          // one network for all tokens
  experts,        // several networks, of which each token passes a few
  shared_expert,  // one more network beside these, which every token passes
  channel_mix,    // a network that mixes each token with the one before it, which it remembers
};

/// Whether layers have experts: those from .leading_dense_block_count on.
enum class ExpertLayers { never, if_counted, always };  // if_counted: where .expert_count says so

/// Whether layers with experts have a shared one, .expert_shared_feed_forward_length wide.
enum class SharedExpert {
  none,
  if_sized,    // where the header has this width
  if_counted,  // if not: as wide as .expert_shared_count experts, where the header has this number
  gated,       // always, and each token has a factor for it: sigmoid(w . x)
  alike,       // always, as wide as one of the experts
};

/// Where attention and feed-forward network have norms: of what they read, of what they add to the
/// residual stream, or of both.
enum class NormPlaces { before, after, both };

/// Norms of queries and keys.
enum class QkNorm {
  none,
  each_head,     // all heads share one weight: attn_q_norm [head_dim]
  own_weights,   // every head has its own weights: [n_head, head_dim]
  query_gains,   // only a factor for each head of queries: attn_q_norm [n_head, 1]
  all_together,  // one norm over all heads of a token: [n_head * head_dim]
};

/// Whether the values that attention gives are multiplied by gates: attn_gate x, through
/// Family::gate_activation.
enum class AttentionGate {
  none,
  each_value,       // [n_head * head_dim_v]
  heads_if_there,   // one gate for each head, in layers that have the matrix
  values_or_heads,  // either, as the matrix has rows
};

/// Which layers rotate queries and keys by position.
enum class RotatedLayers {
  all,
  if_finetuned,       // all, unless .rope.scaling.finetuned is false (Granite's switch)
  three_of_four,      // all but every fourth (NoPE, arXiv 2501.18795)
  windows,            // layers with a sliding window
  windows_and_dense,  // these, and the first ones, which have no experts
  windows_if_any,     // these, or all if the file has no windows
  if_flagged,         // those that .attention.rope_pattern says, or all without it
  none,               // positions are learned vectors, added to the embeddings: position_embd
  biased,             // none: scores have biases that grow with distance (Family::position_bias)
};

/// The token ids [begin, end).
struct IdRange {
  int64_t begin = 0, end = 0;
};

/// What is done with .logit_scale.
enum class LogitScale { none, multiplies, multiplies_if_given, divides, divides_if_given };

/// Whether the logits use the embedding matrix: allowed if the file has no output.weight, always,
/// or never (a missing output.weight is then an error).
enum class SharedOutput { allowed, always, never };

/// A family's sliding windows. .attention.sliding_window gives their length.
struct SlidingWindows {
  int64_t length = 0;       // if the file gives none; 0: no windows
  int64_t full_every = 0;   // the last of every full_every layers has full attention; 0: none
  double freq_base = 0.0;   // of the rotation in layers with a window; 0: as in other layers
  bool full_first = false;  // the first of them has it, not the last
  bool scaled = true;       // whether that rotation is scaled for long contexts
  bool own_width = false;   // whether .rope.dimension_count_swa may differ from .dimension_count
};

/// A family's QueryTemperature, where the file says nothing.
struct FamilyTemperature {
  double scale = 0.0;  // 0: none
  int64_t length = 0;  // 0: .rope.scaling.original_context_length
  int32_t offset = 0;
};

/// The defaults are Llama's (arXiv 2302.13971): RMS norms before attention and before the
/// feed-forward network, rotation of neighbouring pairs, grouped-query attention, SwiGLU.
struct Family {
  std::string_view name;    // general.architecture
  std::string_view models;  // the models people know it by

  /// Makes ModelSpec::layers where these differ by more than the switches below say. Then the keys
  /// that begin with one of own_keys are its own.
  void (*make_layers)(const MetadataReader& reader, ModelSpec& spec) = nullptr;
  std::span<const std::string_view> own_keys = {};
  ExpertLayers experts = ExpertLayers::never;
  SharedExpert shared_expert = SharedExpert::none;
  bool caps_router = false;  // .router_logit_softcapping, where the header has it
  /// Whether the first layers have no experts that have no router, if no key counts them.
  bool counts_routers = false;
  bool averages_shared = false;  // half of what the shared expert and the others give is added

  NormKind norm = NormKind::rms;
  bool norm_by_epsilon = false;                  // RMS norms, if the header has only their epsilon
  bool plain_norms = false;                      // norms have no weights
  std::string_view output_norm = "output_norm";  // the tensor's name, without ".weight"
  Presence norm_bias = Presence::optional;
  NormPlaces norm_places = NormPlaces::before;
  bool after_if_flagged = false;  // norms come after the blocks if .swin_norm says so
  std::string_view attention_post_norm = "post_attention_norm";  // of the norm after attention
  std::string_view ffn_post_norm = "post_ffw_norm";  // of the norm after the feed-forward network
  QkNorm qk_norm = QkNorm::none;
  /// These are layer norms with an epsilon of 1e-5, and with biases where the file has them,
  /// whatever `norm` is.
  bool qk_layer_norm = false;
  Presence qk_norm_weights = Presence::required;
  bool qk_norm_after_rotation = false;  // otherwise before
  bool value_norm = false;              // values are normed too, without weights
  bool values_of_keys = false;  // made by the matrix of the keys in layers without one for values
  /// Attention and the feed-forward network read the same norm, and both results are added to the
  /// residual stream. Also the case if the file has no ffn_norm and that is optional.
  bool parallel = false;
  /// The same if .use_parallel_residual says so, but for the feed-forward network's norm, which is
  /// another one of the same residual stream.
  bool parallel_if_flagged = false;
  /// With `parallel`: whether attention reads a norm of its own, attn_norm_2, if the first layer
  /// has it. attn_norm is then the feed-forward network's.
  bool may_have_second_norm = false;
  Presence ffn_norm = Presence::required;
  std::string_view ffn_norm_name = "ffn_norm";  // of the norm before the feed-forward network

  Presence qkv_bias = Presence::optional;
  Presence output_bias = Presence::optional;  // of attention's output projection
  Presence logits_bias = Presence::optional;  // of the matrix that computes logits
  Presence ffn_bias = Presence::optional;
  Presence expert_bias = Presence::optional;  // of every expert, and of the router
  Presence choice_bias = Presence::optional;  // of the experts' choice

  Activation activation = Activation::silu;
  bool names_activation = false;  // .hidden_activation says which, if it is there
  /// How experts are scored, unless .expert_gating_func says so.
  ExpertScore expert_score = ExpertScore::softmax;
  /// Whether the weights of a token's experts add up to 1, unless .expert_weights_norm says so.
  bool experts_normalized = true;
  /// What experts read, not what they give, is multiplied by their weights. A token has one expert.
  bool weighs_inputs = false;
  bool gated = true;  // down(f(gate x) * up x); otherwise down(f(up x))
  /// Layers may limit gates after SiLU, and what these are multiplied with: .swiglu_clamp_exp of
  /// experts, .swiglu_clamp_shexp of other networks.
  bool limits_gates = false;
  /// The router reads the residual stream itself, as it is before attention.
  bool routes_first = false;
  bool xielu = false;        // f is xIELU, with numbers of each layer's own, instead of activation
  bool counts_both = false;  // .feed_forward_length counts the values of gate and up together
  bool fused_gate = false;   // ffn_up holds gate and up, in this order
  bool fused_shared_gate = false;  // the same of the shared expert's ffn_up_shexp

  RopeLayout rope = RopeLayout::norm;
  RopeLayout index_rope = RopeLayout::norm;  // of what indexers compare (IndexSpec)
  /// .rope.scaling.alpha stretches the rotation: its base is multiplied by alpha^(d / (d - 2)).
  bool stretches_base = false;
  RotatedLayers rotated = RotatedLayers::all;
  /// Layers without a window rotate half as many values as those with one. The file's factors are
  /// theirs alone, and may be more than they need.
  bool half_rotated = false;
  SlidingWindows windows = {};
  FamilyTemperature temperature = {};

  bool scales_embeddings = false;  // by sqrt(n_embd)
  bool layer_inputs = false;  // .embedding_length_per_layer_input, if not 0 (blocks/layer_input.h)
  bool sub_norms = false;  // what attention gives, and the network between its matrices, is normed
  bool layer_scales = false;  // layer_output_scale: a layer multiplies the residual stream by it
  Presence stream_scales = Presence::optional;  // .embedding_scale, .residual_scale
  LogitScale logit_scale = LogitScale::none;
  bool sinks = false;                         // of every head's attention: attn_sinks
  Presence layer_sinks = Presence::required;  // with `sinks`: in each layer
  /// Values may have another size than keys, and .attention.value_scale multiplies what attention
  /// gives.
  bool values_differ = false;
  AttentionGate attention_gate = AttentionGate::none;
  Activation gate_activation = Activation::sigmoid;
  float attention_softcap = 0.0f;  // if the file does not say; 0: none
  float final_softcap = 0.0f;      // of the logits; same default
  int64_t wide_scale_n_layer = 0;  // models with this n_layer scale scores by n_embd / n_head
  /// Linear position biases (ALiBi, arXiv 2108.12409) in place of a rotation, whose steepest slope
  /// is that of PositionBias: .attention.max_alibi_bias, or this where the header has no such key.
  /// 0: none.
  float position_bias = 0.0f;
  int64_t biased_n_layer = 0;    // with position_bias: only models with this n_layer; 0: all
  bool scales_by_width = false;  // scores by 1 / head_dim, not by its root
  bool embedding_norm = false;   // token_embd_norm, of embeddings
  /// Each layer ends by adding the (normed) embeddings times layer_output_scale.
  bool adds_embeddings = false;
  SharedOutput shared_output = SharedOutput::allowed;
  IdRange never_written = {};  // tokens whose logits are as low as they can be
};

/// Family::own_keys of families with position biases, some of which may clamp queries too.
inline constexpr std::array<std::string_view, 1> kBiasKeys = {"attention.max_alibi_bias"};
inline constexpr std::array<std::string_view, 2> kBiasAndClampKeys = {"attention.max_alibi_bias",
                                                                      "attention.clamp_kqv"};

/// Family::own_keys of families that may clamp queries, keys and values.
inline constexpr std::array<std::string_view, 1> kClampKeys = {"attention.clamp_kqv"};

std::span<const Family> families();
/// Throws Error{kBadModel} naming general.architecture and the supported ones.
const Family& find_family(const GgufFile& file);

}  // namespace snapkv
