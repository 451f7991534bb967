// SPDX-License-Identifier: MIT
// DenseFfn: the feed-forward network that every token passes whole: with a gate (SwiGLU, GeGLU:
// arXiv 2002.05202) or without.
#pragma once

#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"

namespace snapkv {

class DenseFfn final : public FeedForward {
 public:
  DenseFfn(const BlockContext& context, LayerLoader& loader);

  void run(const Tensor& normed, const Tensor& x, const LayerPass& pass) const override;
  std::vector<const Weight*> matrices() const override { return present({&gate_, &up_, &down_}); }
  std::vector<const Norm*> norms() const override { return present({&post_norm_}); }

 private:
  const BlockContext& context_;
  Weight gate_, up_;  // [n_ff, n_embd]; no gate where the family has none
  Weight down_;       // [n_embd, n_ff]
  Norm post_norm_;    // [n_embd]
};

}  // namespace snapkv
