// SPDX-License-Identifier: MIT
#include "model/blocks/token_indexer.h"

#include "backend/ops.h"

namespace snapkv {

TokenIndexer::TokenIndexer(const BlockContext& context, LayerLoader& loader)
    : context_(&context), layer_(&loader.layer()) {
  constexpr float kEpsilon = 1e-6f;
  const LatentSpec& latent = layer_->latent;
  const IndexSpec& index = latent.index;
  const int64_t n_embd = loader.config().n_embd, d = index.head_dim;
  wq_ = loader.matrix("indexer.attn_q_b", index.n_head * d, latent.q_rank);
  wk_ = loader.matrix("indexer.attn_k", d, n_embd);
  weights_ = loader.matrix("indexer.proj", index.n_head, n_embd);
  k_norm_ = {loader.vector("indexer.k_norm.weight", d, Presence::required),
             loader.vector("indexer.k_norm.bias", d, Presence::required), kEpsilon, true};
  q_ = context.activations.add_heads("indexer's queries", index.n_head, d);
  k_ = context.activations.add_heads("indexer's keys", 1, d);
  weights_out_ = context.activations.add("indexer's weights", index.n_head);
}

Tensor TokenIndexer::keys(const Tensor& normed, const LayerPass& pass) const {
  const int64_t n = normed.shape[0], d = layer_->latent.index.head_dim;
  const Tensor k = pass.buffers->get(k_, n), rows = k.reshaped({n, d});
  const LinearCall call[] = {{&wk_, rows}};
  pass.linear->apply(normed, call);
  normalize(*pass.backend, context_->spec, k_norm_, rows, rows);
  ops::rope(*pass.backend, k, pass.pos,
            context_->rotations.find(layer_->latent.index.rotation, pass.n_ctx));
  return rows;
}

RowChoice TokenIndexer::choice(const Tensor& normed, const Tensor& latent,
                               const LayerPass& pass) const {
  const IndexSpec& index = layer_->latent.index;
  const int64_t n = normed.shape[0];
  const Tensor q = pass.buffers->get(q_, n), weights = pass.buffers->get(weights_out_, n);
  if (n > 0) {
    const LinearCall of_latent[] = {{&wq_, q.reshaped({n, index.n_head * index.head_dim})}};
    const LinearCall of_normed[] = {{&weights_, weights}};
    pass.linear->apply(latent, of_latent);
    pass.linear->apply(normed, of_normed);
    ops::rope(*pass.backend, q, pass.pos.last(n),
              context_->rotations.find(index.rotation, pass.n_ctx));
  }
  return {q, weights, layer_->latent.n_shared, index.top_k};
}

}  // namespace snapkv
