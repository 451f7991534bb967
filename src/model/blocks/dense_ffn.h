// SPDX-License-Identifier: MIT
// DenseFfn: the feed-forward network that every token passes whole: with a gate (SwiGLU, GeGLU:
// arXiv 2002.05202) or without. A shared expert is one too, whose result each token may scale.
#pragma once

#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"

namespace snapkv {

class DenseFfn final : public FeedForward {
 public:
  DenseFfn(const FeedForwardPart& part, const BlockContext& context, LayerLoader& loader);

  void run(const Tensor& normed, const Tensor& x, const LayerPass& pass) const override;
  std::vector<const Weight*> matrices() const override {
    return present({&gate_, &up_, &token_gate_, &down_.w});
  }
  std::vector<const Norm*> norms() const override {
    return present({&sub_norm_, &down_.post_norm});
  }

 private:
  void activate(const Tensor& x, const Tensor& factor, const Tensor& act,
                const LayerPass& pass) const;

  const BlockContext& context_;
  const XieluSpec xielu_;
  const float gate_factor_;
  const float peaks_;
  const GateLimits limits_;
  Weight gate_, up_;                          // [n_ff, n_embd]; no gate where the family has none
  Norm sub_norm_;                             // [n_ff], where Family::sub_norms
  Weight token_gate_;                         // [1, n_embd], or empty
  ResidualOutput down_;                       // of n_ff values
  ActivationTensor gate_out_, up_out_, act_;  // [n, n_ff]; no gate_out_ where there is no gate
  ActivationTensor factor_;                   // [n, 1]
};

}  // namespace snapkv
