// SPDX-License-Identifier: MIT
// ExpertsFfn: a mixture of experts (arXiv 2401.04088, section 2.1). Each expert is a gated
// feed-forward network; a router, one matrix, chooses a few of them for each token, whose weighted
// outputs are added. Both steps are ops, so that the choice stays in the device's memory. Experts
// may work on fewer values than the layer has, which one matrix makes and another takes back
// (Nemotron 3 Super). Experts of a group may share a smaller one, which their tokens pass too.
#pragma once

#include <vector>

#include "backend/ops.h"
#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"

namespace snapkv {

class ExpertsFfn final : public FeedForward {
 public:
  ExpertsFfn(const FeedForwardPart& part, const BlockContext& context, LayerLoader& loader);

  void begin(const Tensor& x, const LayerPass& pass) const override;
  void run(const Tensor& normed, const Tensor& x, const LayerPass& pass) const override;
  std::vector<const Weight*> matrices() const override {
    return present({&latent_down_, &latent_up_});
  }
  std::vector<const Weight*> other_matrices() const override;
  std::vector<const Norm*> norms() const override { return present({&router_norm_}); }
  std::vector<Tensor> vectors() const override { return {choice_bias_, own_factors_}; }

 private:
  void load_experts(LayerLoader& loader);
  void load_adjugates(LayerLoader& loader);
  void load_factors(LayerLoader& loader);
  int64_t n_expert() const { return context_.spec.config.n_expert; }
  void plan_activations(ActivationPlan& plan);
  Tensor router_logits(const Tensor& normed, const LayerPass& pass) const;
  Tensor router_input(int64_t n, const LayerPass& pass) const;
  void add_experts(const Tensor& in, const Tensor& out, const Tensor& chosen, const Tensor& weights,
                   const LayerPass& pass) const;
  void add_adjugates(const Tensor& in, const Tensor& out, const Tensor& chosen,
                     const Tensor& weights, const LayerPass& pass) const;
  Tensor latent_input(const Tensor& normed, const LayerPass& pass) const;
  Tensor weighed_input(const Tensor& normed, const Tensor& logits, const Tensor& chosen,
                       const Tensor& weights, const LayerPass& pass) const;
  ExpertMemory memory(int64_t n, const LayerPass& pass) const;

  const BlockContext& context_;
  const int64_t n_ff_;       // of an expert
  const float factor_;       // LayerFactors::down
  const GateLimits limits_;  // of every expert
  const AdjugateSpec adjugate_spec_;
  const int64_t n_in_;                       // values that experts read and give
  Weight router_;                            // [n_expert, n_embd] f32
  Norm router_norm_;                         // [n_embd] of a router that reads the residual stream
  Tensor choice_bias_;                       // [n_expert], or empty
  Tensor own_factors_;                       // [n_expert], or empty
  std::vector<Weight> gates_, ups_, downs_;  // [n_expert]; no gates where the family has none
  std::vector<Expert> experts_;              // the same, as ops take them
  /// [n_expert / n_group], where there are adjugates
  std::vector<Weight> adjugate_gates_, adjugate_ups_, adjugate_downs_;
  std::vector<Expert> adjugates_;   // [n_expert]: that of each expert
  Weight latent_down_, latent_up_;  // [n_in, n_embd], [n_embd, n_in]; or empty

  ActivationTensor logits_;                // [n, n_expert]
  ActivationTensor chosen_, weights_;      // [n, n_used]
  ActivationTensor gathered_, branch_;     // [m, n_in], m = most_rows()
  ActivationTensor router_in_;             // [m, n_embd]
  ActivationTensor latent_, latent_in_;    // [n, n_in], where experts work on fewer values
  ActivationTensor weighed_, weighed_in_;  // [n, n_embd], where Family::weighs_inputs
  ActivationTensor gate_, up_, act_;       // [m, n_ff]
  ActivationTensor adjugate_gate_, adjugate_up_, adjugate_act_;  // [m, AdjugateSpec::n_ff]
  ActivationTensor order_, factors_;                             // ExpertMemory's, as columns
  ActivationTensor router_input_;  // [n, n_embd], where there is router_norm_
};

}  // namespace snapkv
