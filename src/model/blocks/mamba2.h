// SPDX-License-Identifier: MIT
// Mamba2Mixer: the selective state-space mixer of Mamba-2 (arXiv 2405.21060, section 7): what each
// token puts into the states of heads and reads from them passes a short convolution; the token
// also chooses how fast a state decays, and a gate scales what comes out.
#pragma once

#include <vector>

#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"

namespace snapkv {

class Mamba2Mixer final : public TokenMixer {
 public:
  Mamba2Mixer(const BlockContext& context, LayerLoader& loader);

  void run(const Tensor& normed, const LayerPass& pass) const override;
  const Weight& output() const override { return out_.w; }
  std::vector<const Weight*> matrices() const override {
    return present({&gate_, &xbc_, &step_, &out_.w});
  }
  std::vector<const Weight*> other_matrices() const override { return {&conv_}; }
  std::vector<const Norm*> norms() const override { return present({&norm_}); }
  std::vector<Tensor> vectors() const override { return {rate_, step_bias_, skip_}; }

 private:
  void load_projections(LayerLoader& loader);
  void plan_activations(ActivationPlan& plan);
  void project(const Tensor& normed, const Tensor& xbc, const Tensor& step, const Tensor& gate,
               const LayerPass& pass) const;
  Tensor scan(const Tensor& xbc, const Tensor& step, const LayerPass& pass) const;

  const BlockContext& context_;
  const LayerSpec& layer_;
  Weight gate_;                     // [n_values, n_embd]
  Weight xbc_;                      // [n_xbc, n_embd]: x of all heads, B and C of all groups
  Weight step_;                     // [n_head, n_embd]
  Weight conv_;                     // [n_xbc, kernel_size] f32, with an optional bias
  Tensor rate_, step_bias_, skip_;  // [n_head]
  Norm norm_;                       // [n_group, n_values / n_group], or empty
  ResidualOutput out_;              // of n_values

  ActivationTensor xbc_out_, convolved_;       // [n, n_xbc]
  ActivationTensor step_out_;                  // [n, n_head]
  ActivationTensor gate_out_, heads_, gated_;  // [n, n_values]; gated_ is what products read
};

}  // namespace snapkv
