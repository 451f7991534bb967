// SPDX-License-Identifier: MIT
// The weights of the decoder in decoder.cpp: what it has once, and the blocks of its layers, which
// know their own (blocks/). The names of tensors are here and there, and nowhere else.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "model/blocks/altup.h"
#include "model/blocks/block.h"
#include "model/blocks/layer_input.h"
#include "model/model_spec.h"
#include "model/weights.h"

namespace snapkv {

struct DecoderLayer {
  // null where a layer has only the other one
  Norm attn_norm;  // [n_embd]
  std::unique_ptr<TokenMixer> mixer;
  Norm ffn_norm;              // [n_embd]
  bool is_side_norm = false;  // whether ffn_norm is of what attention reads, before it adds to it
  std::unique_ptr<FeedForward> ffn;
  std::unique_ptr<LayerInput> input;  // null: the layer has none
  std::unique_ptr<AltUpLayer> altup;  // where tokens have several residual streams
  float scale = 1.0f;                 // of the residual stream after the layer
  float embedding_factor = 0.0f;      // of the embeddings that the layer adds at its end

  std::vector<const GgufTensor*> file_tensors;  // the whole layer's, matrices and vectors

  /// Those that there are.
  std::vector<const Block*> blocks() const;
  /// The norms of the layer and of its blocks.
  std::vector<const Norm*> norms() const;
};

struct DecoderWeights {
  Weight token_embd;                 // [n_vocab, n_embd]
  Weight position_embd;              // [n_positions, n_embd], or empty
  Norm embedding_norm;               // [n_embd], where Family::embedding_norm
  LayerInputTables layer_inputs;     // where layers have inputs of their own
  std::unique_ptr<AltUpEnds> altup;  // where tokens have several residual streams
  std::vector<DecoderLayer> layers;
  Norm output_norm;  // [n_embd]
  Weight output;     // [n_vocab, n_embd]
  // [n_rot / 2] f32, or empty: rope_freqs, or the factors for short and for long contexts
  Tensor rope_factors, rope_factors_long;

  /// All tensors that are passed to ops as weights, in the order in which a device places them.
  std::vector<Tensor> all() const;
};

/// `owned` receives memory that the tensors need beside the file's. Throws Error{kBadModel} naming
/// the tensor that is missing, of another shape or type, or unknown.
DecoderWeights load_decoder_weights(const GgufFile& file, const BlockContext& context,
                                    std::vector<Buffer>& owned);

}  // namespace snapkv
