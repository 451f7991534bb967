// SPDX-License-Identifier: MIT
// DeltaNetMixer: linear attention by the gated delta rule (Gated DeltaNet, arXiv 2412.06464), as
// Qwen3-Next and Qwen 3.5 have it: queries, keys and values pass a short convolution, each head keeps
// a matrix of what values its keys had, and a gate scales what comes out.
#pragma once

#include <vector>

#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"

namespace snapkv {

class DeltaNetMixer final : public TokenMixer {
 public:
  DeltaNetMixer(const BlockContext& context, LayerLoader& loader);

  void run(const Tensor& normed, const LayerPass& pass) const override;
  const Weight& output() const override { return out_.w; }
  std::vector<const Weight*> matrices() const override {
    return present({&qkv_, &gate_, &beta_, &decay_, &beta_decay_, &out_.w});
  }
  std::vector<const Weight*> other_matrices() const override { return {&conv_}; }
  std::vector<const Norm*> norms() const override { return {&norm_}; }
  std::vector<Tensor> vectors() const override { return {rate_, decay_bias_}; }

 private:
  void load_projections(LayerLoader& loader);
  void plan_activations(ActivationPlan& plan);
  struct Projected;
  Projected project(const Tensor& normed, const LayerPass& pass) const;

  const BlockContext& context_;
  const LayerSpec& layer_;
  Weight qkv_;          // [n_qkv, n_embd]: queries, keys and values
  Weight gate_;         // [n_head * d_v, n_embd]
  Weight beta_, decay_;  // [n_head, n_embd] each, or
  Weight beta_decay_;   // [2 * n_head, n_embd]: for each head of keys its heads' betas, then decays
  Weight conv_;         // [n_qkv, kernel_size] f32
  Tensor rate_, decay_bias_;  // [n_head]
  Norm norm_;           // [d_v], of each head's output
  ResidualOutput out_;  // of n_head * d_v values

  ActivationTensor qkv_out_, convolved_;       // [n, n_qkv]
  ActivationTensor gate_out_, heads_, gated_;  // [n, n_head * d_v]
  ActivationTensor beta_out_, decay_out_;      // [n, n_head]
  ActivationTensor beta_decay_out_;            // [n, 2 * n_head], where there is such a matrix
};

}  // namespace snapkv
