// SPDX-License-Identifier: MIT
// LinearRunner: applies a layer's weight matrices, either straight from the file's type (few rows)
// or from copies packed once per prompt for the GEMM library (many rows). Layers don't know which.
#pragma once

#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/ops.h"
#include "model/weights.h"

namespace snapkv {

/// One product that shares its input with others of the same apply().
struct LinearCall {
  const Weight* weight = nullptr;
  Tensor out;               // [n, n_out] f32; with packed weights also compute dtype
  bool accumulate = false;  // add to the residual stream in `out`
};

class LinearRunner {
 public:
  explicit LinearRunner(Backend& backend) : backend_(backend) {}

  /// From here on `weights` are packed (memory of earlier ones is reused); others are read
  /// directly.
  void pack(std::span<const Weight* const> weights);
  /// From here on every weight is read directly.
  void unpack() { n_packed_ = 0; }
  bool packed() const { return n_packed_ > 0; }
  /// Type that apply() wants of x.
  DType input_dtype() const { return packed() ? backend_.compute_dtype() : DType::f32; }

  /// x [n, n_in] of input_dtype(). All weights are packed, or none is.
  void apply(const Tensor& x, std::span<const LinearCall> calls);

 private:
  const PackedWeight* find(const Weight* weight) const;

  Backend& backend_;
  int64_t n_packed_ = 0;
  std::vector<const Weight*> keys_;
  std::vector<PackedWeight> packed_;
};

}  // namespace snapkv
