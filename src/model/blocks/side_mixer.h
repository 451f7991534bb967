// SPDX-License-Identifier: MIT
// SideMixer: attention and a mixer with a recurrent state side by side. Both read the same norm of
// the residual stream, and both add to the stream.
#pragma once

#include <memory>
#include <vector>

#include "model/blocks/block.h"

namespace snapkv {

class SideMixer final : public TokenMixer {
 public:
  SideMixer(std::unique_ptr<TokenMixer> attention, std::unique_ptr<TokenMixer> recurrent);

  void run(const Tensor& normed, const LayerPass& pass) const override;
  const Weight& output() const override { return attention_->output(); }
  std::span<const Tensor> value_heads() const override { return attention_->value_heads(); }
  Tensor sinks() const override { return attention_->sinks(); }
  std::vector<const Weight*> matrices() const override;
  std::vector<const Weight*> other_matrices() const override;
  std::vector<const Norm*> norms() const override;
  std::vector<Tensor> vectors() const override;

 private:
  std::unique_ptr<TokenMixer> attention_, recurrent_;
};

}  // namespace snapkv
