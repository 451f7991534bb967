// SPDX-License-Identifier: MIT
// The decoder's weights and where they are in a GGUF file. Only decoder_weights.cpp knows the names
// of a layer's tensors.
#pragma once

#include <span>
#include <vector>

#include "model/model_spec.h"
#include "model/weights.h"

namespace snapkv {

/// Weights of a norm; empty if there is no norm.
struct Norm {
  Tensor weight;  // [n], or [n_head, head_dim] if each head has weights of its own
  Tensor bias;    // [n], or empty; only layer norms have one

  explicit operator bool() const { return bool{weight}; }
};

struct DecoderLayer {
  Norm attn_norm;       // [n_embd]
  Weight wq;            // [n_head * head_dim, n_embd]
  Weight wk, wv;        // [n_head_kv * head_dim, n_embd]
  Norm q_norm, k_norm;  // shaped as Family::qk_norm says
  Weight wo;            // [n_embd, n_head * head_dim]
  Norm attn_post_norm;  // [n_embd]
  Norm ffn_norm;        // [n_embd]
  Weight gate, up;      // [n_ff, n_embd]; gate is empty if the family has none
  Weight down;          // [n_embd, n_ff]
  Norm ffn_post_norm;   // [n_embd]

  std::vector<const GgufTensor*> file_tensors;  // the whole layer's, matrices and vectors

  std::vector<const Weight*> matrices() const;
  std::vector<const Norm*> norms() const;
};

struct DecoderWeights {
  Weight token_embd;     // [n_vocab, n_embd]
  Weight position_embd;  // [n_positions, n_embd], or empty
  std::vector<DecoderLayer> layers;
  Norm output_norm;  // [n_embd]
  Weight output;     // [n_vocab, n_embd]
  // [n_rot / 2] f32, or empty: rope_freqs, or the factors for short and for long contexts
  Tensor rope_factors, rope_factors_long;

  /// All tensors that are passed to ops as weights, in the order in which a device places them.
  std::vector<Tensor> all() const;
};

/// `owned` receives memory for tensors that are not used directly from the file. Throws
/// Error{kBadModel} naming the tensor that is missing, has another shape or type, or is unknown.
DecoderWeights load_decoder_weights(const GgufFile& file, const ModelSpec& spec,
                                    std::vector<Buffer>& owned);

}  // namespace snapkv
