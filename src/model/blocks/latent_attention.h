// SPDX-License-Identifier: MIT
// LatentAttention: multi-head latent attention (arXiv 2405.04434, section 2.1). What is remembered
// of a token is one row: a part of the key that all heads share, rotated in most models, then the
// normed latent vector c, of which each head would make the rest of its key, K_h c, and its value,
// V_h c. As q . K_h c = K_h^T q . c, queries are taken into the latent space instead, heads attend
// to the rows themselves, and V_h makes of each head's sum of latent vectors its sum of values.
//
// With an indexer its key lies between the two parts of a row, so that policies and files keep it
// with the row. Queries have zeros there.
#pragma once

#include <vector>

#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"
#include "model/blocks/token_indexer.h"

namespace snapkv {

class LatentAttention final : public TokenMixer {
 public:
  LatentAttention(const BlockContext& context, LayerLoader& loader);

  void run(const Tensor& normed, const LayerPass& pass) const override;
  const Weight& output() const override { return out_.w; }
  std::vector<const Weight*> matrices() const override;
  std::vector<const Norm*> norms() const override {
    return present({&q_norm_, &latent_norm_, &out_.post_norm, &indexer_.norm()});
  }
  std::vector<Tensor> vectors() const override { return {zeros_}; }
  std::span<const Tensor> value_heads() const override { return value_matrices_; }

 private:
  static void ignore_indexer(LayerLoader& loader);
  void load_heads(LayerLoader& loader);
  void plan_activations(ActivationPlan& plan);
  void project(const Tensor& normed, const Tensor& q, const Tensor& row,
               const LayerPass& pass) const;
  Tensor make_rows(const Tensor& normed, const Tensor& projected, const LayerPass& pass) const;
  Tensor make_queries(const Tensor& projected, const LayerPass& pass) const;
  void gate_heads(const Tensor& normed, const Tensor& values, const LayerPass& pass) const;
  void add_output(const Tensor& normed, const Tensor& sums, const LayerPass& pass) const;

  int64_t n_shared() const { return sizes_.n_shared; }

  const BlockContext& context_;
  const LayerSpec& layer_;
  const LatentSpec& sizes_;
  Weight wq_;                   // [n_head * (n_own + n_shared), n_embd], or with q_rank of two:
  Weight wq_down_, wq_up_;      // [q_rank, n_embd], [n_head * (n_own + n_shared), q_rank]
  Norm q_norm_;                 // [q_rank]
  Weight wkv_;                  // [rank + n_shared, n_embd]
  Norm latent_norm_;            // [rank]
  std::vector<Weight> keys_;    // [n_head] of [rank, n_own]: K_h^T
  std::vector<Weight> values_;  // [n_head] of [n_value, rank]: V_h
  std::vector<Tensor> value_matrices_;  // the same
  Weight gate_;                         // [n_head, n_embd], where heads have gates
  TokenIndexer indexer_;                // where tokens are chosen
  Tensor zeros_;                        // [1, indexer's head_dim], the same
  ResidualOutput out_;                  // of n_head * n_value values

  ActivationTensor q_down_, q_normed_;      // [n, q_rank]
  ActivationTensor q_out_;                  // [n, n_head * (n_own + n_shared)]
  ActivationTensor own_, shared_;           // [n_head * n, n_own], [n_head * n, n_shared]
  ActivationTensor absorbed_;               // [n_head * n, rank]
  ActivationTensor q_;                      // [n, n_head, n_shared + rank]
  ActivationTensor kv_out_;                 // [n, rank + n_shared]
  ActivationTensor latent_, key_shared_;    // [n, rank], [n, n_shared]
  ActivationTensor row_;                    // [n, 1, n_shared + rank]
  ActivationTensor sums_;                   // [n, n_head, rank]
  ActivationTensor head_sums_;              // [n_head * n, rank]
  ActivationTensor head_values_;            // [n_head * n, n_value]
  ActivationTensor gate_out_, head_gates_;  // [n, n_head], [n_head * n, 1]
  ActivationTensor attn_;                   // [n, n_head * n_value]
  ActivationTensor unindexed_;              // [n, indexer's head_dim]
};

}  // namespace snapkv
