// SPDX-License-Identifier: MIT
// LowRank: W2 f(W1 x) + bias, where W1 makes few values of many and W2 many of these.
#pragma once

#include <string>

#include "backend/ops.h"
#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"

namespace snapkv {

class LowRank {
 public:
  LowRank() = default;
  /// Tensors `name`1 [rank, n_embd] and `name`2 [n_embd, rank]; `bias`: the full name of one, or
  /// empty.
  LowRank(const BlockContext& context, LayerLoader& loader, const std::string& name, int64_t rank,
          Activation f, const std::string& bias);

  explicit operator bool() const { return bool{down_}; }
  /// x [n, n_embd] of the products' type, out [n, n_embd] f32.
  void run(const Tensor& x, const LayerPass& pass, const Tensor& out) const;
  const Weight& down() const { return down_; }
  const Weight& up() const { return up_; }

 private:
  Weight down_, up_;
  Activation f_ = Activation::identity;
  ActivationTensor low_, read_;  // [n, rank]; the second is for products
};

}  // namespace snapkv
