// SPDX-License-Identifier: MIT
// LayerInput: what a layer of Gemma 3n or 4 adds of the tokens themselves, after its networks. Each
// token has a short vector for each layer, which is in a table of its own and to which a projection
// of the token's embedding is added; a gate that the residual stream opens lets it in. A chunk's
// vectors are made where they are used, from the rows of its tokens alone: for a whole prompt and
// all layers they would be larger than the hidden states.
#pragma once

#include <vector>

#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"

namespace snapkv {

/// What all layers share.
struct LayerInputTables {
  Weight token_embd;  // [n_vocab, n_embd], the model's embeddings
  Weight table;       // [n_vocab, n_layer * n]: n values for each layer
  Weight projection;  // [n_layer * n, n_embd]
  Norm norm;          // [n], of what is projected

  /// Throws Error{kBadModel} naming the tensor that is missing or has another shape or type.
  static LayerInputTables load(const ModelSpec& spec, WeightLoader& weights,
                               const Weight& token_embd);
};

class LayerInput final : public Block {
 public:
  LayerInput(const LayerInputTables& tables, const BlockContext& context, LayerLoader& loader);

  /// Adds to x [n, n_embd], the last rows of pass.x.
  void run(const Tensor& x, const LayerPass& pass) const;
  /// What run() adds, for a gate that x opens: [n, n_embd], until the next block is run.
  Tensor compute(const Tensor& x, const LayerPass& pass) const;
  std::vector<const Weight*> matrices() const override {
    return present({&projection_, &gate_, &out_});
  }
  std::vector<const Norm*> norms() const override { return present({&norm_, &post_norm_}); }

 private:
  Tensor make_input(std::span<const int32_t> tokens, const LayerPass& pass) const;

  const BlockContext& context_;
  const int64_t il_;
  const int64_t n_;                  // values of an input
  Tensor token_embd_;                // [n_vocab, n_embd]
  Tensor table_;                     // [n_vocab * n_layer, n]
  Weight projection_;                // [n, n_embd]
  Norm norm_;                        // [n]
  Weight gate_;                      // [n, n_embd]
  Weight out_;                       // [n_embd, n]
  Norm post_norm_;                   // [n_embd]
  ActivationTensor embedding_;       // [n_tokens, n_embd]
  ActivationTensor read_;            // [n_tokens, n_embd], what products read
  ActivationTensor input_, row_;     // [n_tokens, n]
  ActivationTensor gated_, branch_;  // [n_tokens, n], [n_tokens, n_embd]
};

}  // namespace snapkv
