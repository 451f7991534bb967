// SPDX-License-Identifier: MIT
// PositionBias: linear position biases of attention's scores (ALiBi, arXiv 2108.12409), as a part
// of the dot product. A softmax does not change when all scores of a query grow alike, so that
// slope * (key's position - query's) is as good as slope * key's position: a product of what a
// query and a key can have. So attention, votes and every policy see the biases of rows wherever
// these lie in a cache. A position is three digits of base 64, which 8 bits hold exactly; a slope
// is the sum of two numbers of 8 bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"

namespace snapkv {

class PositionBias {
 public:
  PositionBias() = default;
  PositionBias(const BlockContext& context, LayerLoader& loader);

  explicit operator bool() const { return bool{slopes_}; }
  /// q [n, n_head, d] as [n, n_head, d + n_values], with what multiplies the digits.
  Tensor widen_queries(const Tensor& q, const LayerPass& pass) const;
  /// k [n, n_head_kv, d] of tokens at pass.pos, in the same way with the digits of their positions.
  Tensor widen_keys(const Tensor& k, const LayerPass& pass) const;
  std::vector<Tensor> tables() const;

 private:
  Tensor look_up(const Tensor& table, std::span<const int32_t> ids, const ActivationTensor& out,
                 const LayerPass& pass) const;

  Tensor slopes_;   // [n_head, n_values]
  Tensor digits_;   // [64, 2]: a digit, twice
  Tensor highest_;  // [4096, n_values - 4]: the same of all digits from the third on, then 0
  ActivationTensor q_, k_;                   // [n, heads, d + n_values]
  ActivationTensor q_values_;                // [n, n_head, n_values]
  ActivationTensor first_, second_, third_;  // [n, n_head_kv, 2 or n_values - 4]
};

}  // namespace snapkv
