// SPDX-License-Identifier: MIT
// LinearMixer: one matrix where other layers have attention. Tokens do not see each other there
// (Puzzle, arXiv 2411.19146, which searches for layers that can do without).
#pragma once

#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"

namespace snapkv {

class LinearMixer final : public TokenMixer {
 public:
  LinearMixer(const BlockContext& context, LayerLoader& loader);

  void run(const Tensor& normed, const LayerPass& pass) const override;
  const Weight& output() const override { return out_.w; }
  std::vector<const Weight*> matrices() const override { return {&out_.w}; }
  std::vector<const Norm*> norms() const override { return {}; }

 private:
  const BlockContext& context_;
  ResidualOutput out_;  // of n_embd values
};

}  // namespace snapkv
