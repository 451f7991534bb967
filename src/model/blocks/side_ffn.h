// SPDX-License-Identifier: MIT
// SideFfn: a dense network and experts side by side, as in Gemma 4. Each reads a norm of its own of
// the residual stream, and has one of what it computes; the sum has another one.
#pragma once

#include <memory>

#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"

namespace snapkv {

class SideFfn final : public FeedForward {
 public:
  SideFfn(const BlockContext& context, LayerLoader& loader, std::unique_ptr<FeedForward> dense,
          std::unique_ptr<FeedForward> experts);

  void run(const Tensor& normed, const Tensor& x, const LayerPass& pass) const override;
  std::vector<const Weight*> matrices() const override;
  std::vector<const Weight*> other_matrices() const override { return experts_->other_matrices(); }
  std::vector<const Norm*> norms() const override;
  std::vector<Tensor> vectors() const override { return experts_->vectors(); }

 private:
  const BlockContext& context_;
  std::unique_ptr<FeedForward> dense_, experts_;
  Norm dense_norm_;                    // [n_embd], of what the dense network computes
  Norm experts_before_;                // [n_embd], of what experts read
  Norm experts_norm_;                  // [n_embd], of what they compute
  Norm post_norm_;                     // [n_embd], of the sum
  ActivationTensor normed_;            // [n, n_embd], what experts read
  ActivationTensor sum_, of_experts_;  // [n, n_embd]
};

}  // namespace snapkv
