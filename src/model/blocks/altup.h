// SPDX-License-Identifier: MIT
// AltUp (arXiv 2301.13310) as Gemma 3n has it: each token has several residual streams, of which a
// layer's attention and feed-forward network compute the first one only. A layer predicts all of
// them from each other, computes the first, and corrects all by how far that is from its
// prediction. With it comes LAuReL (arXiv 2411.07501), a path of low rank beside attention.
#pragma once

#include <vector>

#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"

namespace snapkv {

/// What a layer has for its streams. Its methods are called in the order in which they stand here.
class AltUpLayer final : public Block {
 public:
  AltUpLayer(const BlockContext& context, LayerLoader& loader);

  /// Makes predictions of the streams in pass.x. Returns the first one: [n, n_embd], in which the
  /// layer's blocks compute.
  Tensor predict(const LayerPass& pass) const;
  /// What the path of low rank makes of the last pass.n_out rows of `active`, which has not been
  /// changed since predict(). `norm`: attention's; `normed`: what it gave. [n_out, n_embd]
  Tensor low_rank(const Norm& norm, const Tensor& active, const Tensor& normed,
                  const LayerPass& pass) const;
  /// active = (active + low) / sqrt(2)
  static void join(const Tensor& active, const Tensor& low, const LayerPass& pass);
  /// Corrects the predictions in the last rows of pass.x by what the layer has computed of them,
  /// [n_out, n_embd], which is overwritten. Returns what the layer's input reads: [n_out, n_embd].
  Tensor correct(const Tensor& computed, const LayerPass& pass) const;
  /// Adds what the layer's input gives to all streams but the first.
  static void add(const Tensor& input, const LayerPass& pass);

  std::vector<const Weight*> matrices() const override { return present({&low_, &high_}); }
  std::vector<const Weight*> other_matrices() const override {
    return present({&router_, &predict_, &correct_});
  }
  std::vector<const Norm*> norms() const override { return present({&router_norm_, &low_norm_}); }
  std::vector<Tensor> vectors() const override { return {scale_}; }

 private:
  Tensor modalities(const Tensor& normed, const LayerPass& pass) const;

  const BlockContext& context_;
  const int64_t n_streams_;
  Weight router_;      // [n_streams, n_embd]
  Norm router_norm_;   // [n_embd]
  Weight predict_;     // [n_streams^2, n_streams]
  Weight correct_;     // [n_streams, n_streams], with a bias of ones
  Tensor scale_;       // [n_embd], of what the layer's input reads
  Weight low_, high_;  // [rank, n_embd], [n_embd, rank]
  Norm low_norm_;      // [n_embd]
  ActivationTensor active_, stream_, low_rank_, branch_;  // [n, n_embd]
  ActivationTensor between_;                              // [n, rank]
  ActivationTensor modalities_, coefficients_;            // [n, n_streams], [n, n_streams^2]
};

/// How the streams are made of embeddings, and merged again after the last layer. The first one is
/// the embedding itself; matrices make the others, with the first one's magnitude.
class AltUpEnds {
 public:
  AltUpEnds(const ModelSpec& spec, ActivationPlan& activations, WeightLoader& weights);

  /// Memory for embeddings: [n, n_embd].
  Tensor embeddings(const LayerPass& pass) const;
  /// Sets pass.x. `embeddings`: as above.
  void begin(const Tensor& embeddings, const LayerPass& pass) const;
  /// What the output norm reads, [n, n_embd], of streams x [n, n_hidden].
  Tensor end(Backend& backend, const Tensor& x, const ActivationBuffer& buffers) const;

  /// Those that begin() uses.
  std::vector<const Weight*> first_matrices() const;
  /// Those that end() uses.
  std::vector<const Weight*> last_matrices() const;

 private:
  int64_t n_streams_ = 0, n_embd_ = 0;
  std::vector<Weight> begin_, end_;                      // [n_streams - 1] of [n_embd, n_embd]
  ActivationTensor embeddings_, stream_, sum_, branch_;  // [n, n_embd]
  ActivationTensor read_;                                // the same, what products read
  std::vector<ActivationTensor> made_;                   // [n_streams - 1] of [n, n_embd]
};

}  // namespace snapkv
