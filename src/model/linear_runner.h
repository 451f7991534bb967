// SPDX-License-Identifier: MIT
// LinearRunner: applies a layer's weight matrices, with the kernels for few rows or with those for
// many. For the latter a backend packs the weights that it cannot multiply in the file's type: once
// per prompt, or within each product. Layers do not know which is used.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/ops.h"
#include "model/weights.h"

namespace snapkv {

/// One product; all calls of one apply() share their input.
struct LinearCall {
  const Weight* weight = nullptr;
  Tensor out;               // [n, n_out] f32; with packed weights also compute dtype
  bool accumulate = false;  // add to `out`, the residual stream
};

class LinearRunner {
 public:
  explicit LinearRunner(Backend& backend) : backend_(backend) {}

  /// From here on `weights` are packed, reusing the memory of earlier packed ones; all others are
  /// read directly. `at_use`: pack within each product, if the backend can.
  void pack(std::span<const Weight* const> weights, bool at_use);
  /// From here on every weight is read directly.
  void unpack() { n_packed_ = 0; }
  bool packed() const { return n_packed_ > 0; }
  /// Whether any product reads the weights themselves rather than a packed copy.
  bool reads_weights() const;
  /// Seconds spent packing within products since the last call.
  double take_pack_seconds() { return std::exchange(workspace_.pack_seconds, 0.0); }
  /// The type of x that apply() expects.
  DType input_dtype() const { return packed() ? backend_.compute_dtype() : DType::f32; }

  /// x [n, n_in] of input_dtype(). Either all weights of the calls are packed, or none.
  void apply(const Tensor& x, std::span<const LinearCall> calls);

 private:
  const PackedWeight* find(const Weight* weight) const;

  Backend& backend_;
  int64_t n_packed_ = 0;
  std::vector<const Weight*> keys_;
  std::vector<PackedWeight> packed_;
  PackWorkspace workspace_;
};

}  // namespace snapkv
