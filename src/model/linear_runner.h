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

/// The matrices of a layer.
struct LayerMatrices {
  std::vector<const Weight*> all_tokens;  // every token is multiplied with them
  bool has_others = false;                // and some tokens with others
};

class LinearRunner {
 public:
  static constexpr size_t kMaxCalls = 8;  // of one apply()

  explicit LinearRunner(Backend& backend) : backend_(backend) {}

  /// From here on weights are packed (memory of earlier ones is reused): those of all tokens now,
  /// or with `at_use` by each product, if the backend can; others always by each product.
  void pack(const LayerMatrices& matrices, bool at_use);
  /// From here on every weight is read directly.
  void unpack() { n_packed_ = 0; }
  bool packed() const { return n_packed_ > 0; }
  /// Whether any product reads the weights themselves rather than a packed copy.
  bool reads_weights() const;
  /// Seconds spent packing within products since the last call.
  double take_pack_seconds() { return std::exchange(workspace_.pack_seconds, 0.0); }
  /// Where packed weights of other matrices go, for ops that multiply with them; null unless
  /// packed().
  PackWorkspace* workspace() { return packed() ? &workspace_ : nullptr; }
  /// The type of x that apply() expects.
  DType input_dtype() const { return packed() ? backend_.compute_dtype() : DType::f32; }

  /// x [n, n_in] of input_dtype().
  void apply(const Tensor& x, std::span<const LinearCall> calls);

 private:
  void multiply(const Tensor& x, std::span<const LinearCall> calls);
  const PackedWeight& packed(const Weight& weight);

  Backend& backend_;
  int64_t n_packed_ = 0;
  std::vector<const Weight*> keys_;
  std::vector<PackedWeight> packed_;
  bool has_others_ = false;
  PackWorkspace workspace_;
};

}  // namespace snapkv
