// SPDX-License-Identifier: MIT
// SumFfn: a feed-forward network of several parts that read the same and whose results are added,
// such as experts and one that every token passes (arXiv 2401.06066).
#pragma once

#include <memory>
#include <vector>

#include "model/blocks/block.h"

namespace snapkv {

class SumFfn final : public FeedForward {
 public:
  SumFfn(const BlockContext& context, std::vector<std::unique_ptr<FeedForward>> parts);

  void run(const Tensor& normed, const Tensor& x, const LayerPass& pass) const override;
  std::vector<const Weight*> matrices() const override;
  std::vector<const Weight*> other_matrices() const override;
  std::vector<const Norm*> norms() const override { return {}; }
  std::vector<Tensor> vectors() const override;

 private:
  std::vector<std::unique_ptr<FeedForward>> parts_;
};

}  // namespace snapkv
