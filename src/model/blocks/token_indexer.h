// SPDX-License-Identifier: MIT
// TokenIndexer: the lightning indexer of sparse attention (DSA, arXiv 2512.02556, section 2.1). It
// makes a small key of each token, and of the tokens that attend a few small queries, each with a
// weight. The rows are chosen by these (RowChoice), one choice for all heads of the layer.
#pragma once

#include <vector>

#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"

namespace snapkv {

class TokenIndexer {
 public:
  TokenIndexer() = default;
  /// Of a layer that has one (LatentSpec::index).
  TokenIndexer(const BlockContext& context, LayerLoader& loader);

  explicit operator bool() const { return bool{wk_}; }
  std::vector<const Weight*> matrices() const { return {&wq_, &wk_, &weights_}; }
  const Norm& norm() const { return k_norm_; }

  /// The keys of all tokens, [n, head_dim]; normed [n, n_embd].
  Tensor keys(const Tensor& normed, const LayerPass& pass) const;
  /// The choice for the last tokens. normed [n_q, n_embd], latent [n_q, q_rank]: what the layer's
  /// own queries are made of.
  RowChoice choice(const Tensor& normed, const Tensor& latent, const LayerPass& pass) const;

 private:
  const BlockContext* context_ = nullptr;
  const LayerSpec* layer_ = nullptr;
  Weight wq_;                     // [n_head * head_dim, q_rank]
  Weight wk_;                     // [head_dim, n_embd]
  Weight weights_;                // [n_head, n_embd]
  Norm k_norm_;                   // [head_dim], a layer norm
  ActivationTensor q_;            // [n, n_head, head_dim]
  ActivationTensor k_;            // [n, 1, head_dim]
  ActivationTensor weights_out_;  // [n, n_head]
};

}  // namespace snapkv
