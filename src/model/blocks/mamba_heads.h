// SPDX-License-Identifier: MIT
// MambaHeadsMixer: a token mixer between those of Mamba and of Mamba-2 (PLaMo 2). A short
// convolution passes over the values of all heads, of which one matrix makes B, C and, by way of a
// few values, the steps of heads, all of them with norms. Each head has a state that decays at one
// pace (SelectiveScan). What comes out is multiplied by a gate of the token's own. The sequence's
// state is that of the convolution, then that of the heads.
#pragma once

#include <vector>

#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"

namespace snapkv {

class MambaHeadsMixer final : public TokenMixer {
 public:
  MambaHeadsMixer(const BlockContext& context, LayerLoader& loader);

  void run(const Tensor& normed, const LayerPass& pass) const override;
  std::vector<const Weight*> matrices() const override {
    return present({&in_, &b_, &c_, &low_step_, &step_, &out_.w});
  }
  std::vector<const Norm*> norms() const override {
    return present({&b_norm_, &c_norm_, &step_norm_, &out_.post_norm});
  }
  std::vector<const Weight*> other_matrices() const override { return {&conv_}; }
  std::vector<Tensor> vectors() const override { return {rate_, step_bias_, skip_}; }
  const Weight& output() const override { return out_.w; }

 private:
  void plan_activations(ActivationPlan& plan);
  Tensor convolve(const Tensor& values, const LayerPass& pass) const;
  Tensor make_steps(const Tensor& x, const Tensor& b, const Tensor& c, const LayerPass& pass) const;
  Tensor scan(const Tensor& x, const LayerPass& pass) const;

  const BlockContext& context_;
  const LayerSpec& layer_;
  Weight in_;                // [n_head * 2 * d_head, n_embd]: of each head gates, then values
  Weight conv_;              // [n_values, conv_kernel] and a bias, f32
  Weight b_, c_, low_step_;  // [d_state, n_values], the same, [step_rank, n_values]
  Weight step_;              // [n_head, step_rank], without the bias
  Norm b_norm_, c_norm_, step_norm_;  // [d_state], the same, [step_rank]
  Tensor rate_, step_bias_, skip_;    // [n_head]
  ResidualOutput out_;                // of n_values

  ActivationTensor both_;              // [n, n_head, 2 * d_head]
  ActivationTensor values_, gates_;    // [n, n_values]
  ActivationTensor convolved_, read_;  // [n, n_values]: what the matrices of B and C read
  ActivationTensor b_out_, c_out_;     // [n, d_state]
  ActivationTensor low_, low_normed_;  // [n, step_rank]
  ActivationTensor step_out_;          // [n, n_head]
  ActivationTensor xbc_;               // [n, n_xbc]
  ActivationTensor heads_, gated_;     // [n, n_values]
};

}  // namespace snapkv
