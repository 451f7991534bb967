// SPDX-License-Identifier: MIT
// ShortConvMixer: a short convolution along the tokens, with a gate before and one after it (LFM2,
// arXiv 2511.23404). Each token sees the last few before it, whose inputs the layer remembers.
#pragma once

#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"

namespace snapkv {

class ShortConvMixer final : public TokenMixer {
 public:
  ShortConvMixer(const BlockContext& context, LayerLoader& loader);

  void run(const Tensor& normed, const LayerPass& pass) const override;
  const Weight& output() const override { return out_.w; }
  std::vector<const Weight*> matrices() const override { return present({&in_, &out_.w}); }
  std::vector<const Weight*> other_matrices() const override { return {&conv_}; }
  std::vector<const Norm*> norms() const override { return {}; }

 private:
  const BlockContext& context_;
  Weight in_;                  // [3 * n_embd, n_embd]: gates before, gates after, values
  Weight conv_;                // [n_embd, kernel_size] f32
  ResidualOutput out_;         // of n_embd values
  ActivationTensor bcx_;       // [n, 3, n_embd]
  ActivationTensor conv_out_;  // [n, n_embd]
};

}  // namespace snapkv
