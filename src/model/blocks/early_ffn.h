// SPDX-License-Identifier: MIT
// EarlyFfn: a dense network after attention, and experts that read a norm of what attention reads
// (Arctic). Both add to the residual stream, so that experts could compute beside attention.
#pragma once

#include <memory>
#include <vector>

#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"

namespace snapkv {

class EarlyFfn final : public FeedForward {
 public:
  EarlyFfn(const BlockContext& context, LayerLoader& loader, std::unique_ptr<FeedForward> dense,
           std::unique_ptr<FeedForward> experts);

  void begin(const Tensor& x, const LayerPass& pass) const override;
  void run(const Tensor& normed, const Tensor& x, const LayerPass& pass) const override;
  std::vector<const Weight*> matrices() const override { return dense_->matrices(); }
  std::vector<const Weight*> other_matrices() const override { return experts_->other_matrices(); }
  std::vector<const Norm*> norms() const override { return present({&experts_norm_}); }
  std::vector<Tensor> vectors() const override { return experts_->vectors(); }

 private:
  const BlockContext& context_;
  const std::unique_ptr<FeedForward> dense_, experts_;
  const Norm experts_norm_;  // [n_embd], of what experts read
  ActivationTensor normed_;  // [n, n_embd]: the same after this norm, kept while attention computes
};

}  // namespace snapkv
