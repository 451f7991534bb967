// SPDX-License-Identifier: MIT
// ModelConfig: sizes and constants of a decoder, read from GGUF metadata. layer_spec.h has what
// differs from layer to layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/ops.h"
#include "model/family.h"

namespace snapkv {

class MetadataReader;

/// Scales queries up at positions beyond the training context (Llama 4's attention temperature):
/// they are multiplied by 1 + scale * ln(1 + floor((pos + offset) / length)).
struct QueryTemperature {
  double scale = 0.0;  // .attention.temperature_scale; 0: no scaling
  int64_t length =
      0;  // .attention.temperature_length, default .rope.scaling.original_context_length
  int32_t offset = 0;  // the family's

  float factor(int32_t pos) const;
};

struct ModelConfig {
  std::string architecture;   // general.architecture, prefix of the keys below
  int64_t n_layer = 0;        // .block_count, without the next ones
  int64_t n_draft_layer = 0;  // .nextn_predict_layers: guess further tokens; not computed
  int64_t n_embd = 0;         // .embedding_length
  int64_t n_expert = 0;       // .expert_count, of each layer that has experts; 0: none has
  int64_t n_expert_used = 0;  // .expert_used_count: of each token
  Routing routing;            // .expert_gating_func, .expert_weights_norm, .expert_weights_scale
  int64_t n_vocab = 0;        // rows of token_embd.weight
  int64_t n_ctx_train = 0;    // .context_length
  int64_t n_positions = 0;    // positions with a learned vector; 0: positions are not learned
  int64_t n_layer_input = 0;  // .embedding_length_per_layer_input; 0: none
  int64_t n_streams = 1;      // residual streams of a token, each n_embd wide (blocks/altup.h)
  /// Whether hidden states carry, beside the residual stream, n_embd values that the first layer or
  /// the embeddings have made and later layers read.
  bool first_values = false;
  Activation activation = Activation::silu;     // Family::activation, or .hidden_activation
  bool parallel = false;                        // Family::parallel, parallel_if_flagged
  NormKind norm = NormKind::rms;                // Family::norm, norm_by_epsilon
  NormPlaces norm_places = NormPlaces::before;  // Family::norm_places, after_if_flagged
  float norm_eps = 1e-5f;        // .attention.layer_norm_rms_epsilon, .attention.layer_norm_epsilon
  float embedding_scale = 1.0f;  // .embedding_scale
  float residual_scale = 1.0f;   // .residual_scale, factor of what a block adds to the stream
  float logit_scale = 1.0f;      // .logit_scale, or its inverse
  float router_softcap = 0.0f;   // .router_logit_softcapping, of experts' logits; 0: none
  float qkv_limit = 0.0f;        // .attention.clamp_kqv, of queries, keys and values; 0: none
  float final_softcap = 0.0f;    // .final_logit_softcapping; 0: none
  QueryTemperature temperature;
  IdRange never_written;  // Family::never_written
  /// The most tokens of a context in models whose layers choose tokens together, since these are
  /// computed without a choice; 0: no such limit.
  int64_t n_unchosen = 0;

  /// Values of a token's hidden state between two layers.
  int64_t n_hidden() const { return (n_streams + (first_values ? 1 : 0)) * n_embd; }
};

/// The heads of a layer's attention.
struct Heads {
  int64_t n_head = 0;     // .attention.head_count
  int64_t n_head_kv = 0;  // .attention.head_count_kv, default n_head; 0: a layer without attention
  int64_t head_dim = 0;   // .attention.key_length, default n_embd / n_head
  int64_t value_dim = 0;  // .attention.value_length, default head_dim; the same in most families
};
/// Of each layer. `all_attend`: whether a layer without attention is an error. `may_differ`:
/// whether value_dim may be another size than head_dim.
std::vector<Heads> read_heads(const MetadataReader& reader, const ModelConfig& config,
                              bool all_attend, bool may_differ = false);

/// Reads and checks the metadata that all decoders share. Throws Error{kBadModel} naming key,
/// expected and actual value.
ModelConfig read_config(const MetadataReader& reader, const Family& family);

}  // namespace snapkv
