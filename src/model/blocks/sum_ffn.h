// SPDX-License-Identifier: MIT
// SumFfn: a feed-forward network of several parts that read the same and whose results are added,
// such as experts and one that every token passes (arXiv 2401.06066).
#pragma once

#include <memory>
#include <vector>

#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"

namespace snapkv {

class SumFfn final : public FeedForward {
 public:
  SumFfn(const BlockContext& context, LayerLoader& loader,
         std::vector<std::unique_ptr<FeedForward>> parts);

  void run(const Tensor& normed, const Tensor& x, const LayerPass& pass) const override;
  std::vector<const Weight*> matrices() const override;
  std::vector<const Weight*> other_matrices() const override;
  std::vector<const Norm*> norms() const override { return present({&post_norm_}); }
  std::vector<Tensor> vectors() const override;

 private:
  const BlockContext& context_;
  std::vector<std::unique_ptr<FeedForward>> parts_;
  const float factor_;    // LayerFactors::sum
  Norm post_norm_;        // [n_embd], of the sum; empty: parts add to the residual stream
  ActivationTensor sum_;  // [n, n_embd], where there is this norm
};

}  // namespace snapkv
