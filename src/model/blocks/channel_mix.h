// SPDX-License-Identifier: MIT
// ChannelMix: the feed-forward network of RWKV (channel mixing: arXiv 2404.05892, 2503.14456),
// which reads each token mixed with the one before it. In RWKV 6 what it gives has a gate.
#pragma once

#include <vector>

#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"

namespace snapkv {

class ChannelMix final : public FeedForward {
 public:
  ChannelMix(const FeedForwardPart& part, const BlockContext& context, LayerLoader& loader);

  bool shifts_tokens() const override { return true; }
  void run(const Tensor& normed, const Tensor& x, const LayerPass& pass) const override;
  std::vector<const Weight*> matrices() const override {
    return present({&key_, &value_.w, &receptance_});
  }
  std::vector<const Norm*> norms() const override { return {}; }
  std::vector<Tensor> vectors() const override { return {mix_}; }

 private:
  const BlockContext& context_;
  const LayerSpec& layer_;
  Tensor mix_;            // [1 or 2, n_embd]: of the key, of the gate
  Weight key_;            // [n_ff, n_embd]
  ResidualOutput value_;  // of n_ff values
  Weight receptance_;     // [n_embd, n_embd], of the gate, or empty

  std::vector<ActivationTensor> mixed_;  // [n, n_embd] each, for products
  ActivationTensor up_, act_;            // [n, n_ff]; the second is for products
  ActivationTensor gate_, branch_;       // [n, n_embd], where there is a gate
};

}  // namespace snapkv
