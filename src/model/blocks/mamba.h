// SPDX-License-Identifier: MIT
// MambaMixer: the selective state-space mixer of Mamba (arXiv 2312.00752, section 3.4). Each
// channel has a state of its own; what a token lets it decay by, writes into it and reads from it
// is made of the token's channels themselves, after a short convolution, and a gate scales what
// comes out.
#pragma once

#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"

namespace snapkv {

class MambaMixer final : public TokenMixer {
 public:
  MambaMixer(const BlockContext& context, LayerLoader& loader);

  void run(const Tensor& normed, const LayerPass& pass) const override;
  const Weight& output() const override { return out_.w; }
  std::vector<const Weight*> matrices() const override {
    return present({&channels_, &gate_, &low_step_, &b_, &c_, &step_, &out_.w});
  }
  std::vector<const Weight*> other_matrices() const override { return {&conv_}; }
  std::vector<const Norm*> norms() const override {
    return present({&step_norm_, &b_norm_, &c_norm_});
  }
  std::vector<Tensor> vectors() const override { return {rate_, skip_}; }

 private:
  void load_projections(LayerLoader& loader);
  void load_norms(LayerLoader& loader);
  void load_rates(LayerLoader& loader);
  void plan_activations(ActivationPlan& plan);
  Tensor convolve(const Tensor& normed, const Tensor& gate, const LayerPass& pass) const;
  Tensor make_steps(const Tensor& x, const Tensor& b, const Tensor& c, const LayerPass& pass) const;
  Tensor scan(const Tensor& x, const LayerPass& pass) const;

  const BlockContext& context_;
  const LayerSpec& layer_;
  Weight channels_, gate_;            // [n_channel, n_embd]
  Weight conv_;                       // [n_channel, kernel_size] f32, with an optional bias
  Weight low_step_;                   // [step_rank, n_channel]
  Weight b_, c_;                      // [d_state, n_channel]
  Norm step_norm_, b_norm_, c_norm_;  // of what these compute, or empty
  Weight step_;                       // [n_channel, step_rank]
  Tensor rate_;                       // [d_state, n_channel]
  Tensor skip_;                       // [n_channel]
  ResidualOutput out_;                // of n_channel values

  ActivationTensor channels_out_, convolved_, read_;  // [n, n_channel]; read_ is for products
  ActivationTensor low_out_, low_normed_;             // [n, step_rank]; the second is for products
  ActivationTensor b_out_, c_out_;                    // [n, d_state]
  ActivationTensor step_out_;                         // [n, n_channel]
  ActivationTensor gate_out_, scanned_, gated_;       // [n, n_channel]; gated_ is for products
};

}  // namespace snapkv
