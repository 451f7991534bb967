// SPDX-License-Identifier: MIT
// The weights of the decoder in decoder.cpp, and where they are in a GGUF file: the only place that
// knows tensor names.
#pragma once

#include <span>
#include <vector>

#include "model/model_spec.h"
#include "model/weights.h"

namespace snapkv {

/// The weights of a norm; empty: there is none.
struct Norm {
  Tensor weight;  // [n], or [n_head, head_dim]: heads with weights of their own
  Tensor bias;    // [n], or empty; of layer norms

  explicit operator bool() const { return bool{weight}; }
};

struct DecoderLayer {
  Norm attn_norm;       // [n_embd]
  Weight wq;            // [n_head * head_dim, n_embd]
  Weight wk, wv;        // [n_head_kv * head_dim, n_embd]
  Norm q_norm, k_norm;  // as Family::qk_norm says
  Weight wo;            // [n_embd, n_head * head_dim]
  Norm attn_post_norm;  // [n_embd]
  Norm ffn_norm;        // [n_embd]
  Weight gate, up;      // [n_ff, n_embd]; no gate where the family has none
  Weight down;          // [n_embd, n_ff]
  Norm ffn_post_norm;   // [n_embd]

  std::vector<const GgufTensor*> file_tensors;  // all of it, in the file

  std::vector<const Weight*> matrices() const;
  std::vector<const Norm*> norms() const;
};

struct DecoderWeights {
  Weight token_embd;     // [n_vocab, n_embd]
  Weight position_embd;  // [n_positions, n_embd], or empty
  std::vector<DecoderLayer> layers;
  Norm output_norm;  // [n_embd]
  Weight output;     // [n_vocab, n_embd]
  // [n_rot / 2] f32, or empty: rope_freqs, or the factors of short and of long contexts
  Tensor rope_factors, rope_factors_long;

  /// Everything that ops are given as a weight, in the order of its use.
  std::vector<Tensor> all() const;
};

/// `owned` receives memory that the tensors need beside the file's. Throws Error{kBadModel} naming
/// the tensor that is missing, of another shape or type, or unknown.
DecoderWeights load_decoder_weights(const GgufFile& file, const ModelSpec& spec,
                                    std::vector<Buffer>& owned);

}  // namespace snapkv
