// SPDX-License-Identifier: MIT
// ArrangedWeights: copies of weights in an order that a backend's products read faster than the
// file's. Results do not depend on whether a copy is there.
#pragma once

#include <cstddef>
#include <span>

#include "base/tensor.h"

namespace snapkv {

class ArrangedWeights {
 public:
  virtual ~ArrangedWeights() = default;

  /// Whether a copy of `weight`, of as many bytes, would be read faster: [n_out, n_in], or several
  /// such matrices.
  virtual bool takes(const Tensor& weight) const = 0;
  /// Reserves memory for copies of these weights. Returns false if there is none. Call once.
  virtual bool reserve(std::span<const Tensor> weights) = 0;
  /// Copies the next rows of a weight, at most max_bytes or else a few, and returns the bytes left.
  /// Once there are none, products read the copy. One weight after another; other threads may
  /// compute products meanwhile.
  virtual size_t copy_next(const Tensor& weight, size_t max_bytes) = 0;
};

}  // namespace snapkv
