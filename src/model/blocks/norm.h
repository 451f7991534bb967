// SPDX-License-Identifier: MIT
// Norm: the weights of an RMS norm or of a layer norm, and its computation.
#pragma once

#include "backend/backend.h"
#include "base/tensor.h"
#include "model/model_spec.h"

namespace snapkv {

/// The weights of a norm; empty: there is none.
struct Norm {
  Tensor weight;          // [n], or [n_head, head_dim]: heads with weights of their own
  Tensor bias;            // as the weight, or empty; of layer norms
  float eps = 0;          // 0: ModelConfig::norm_eps
  bool is_layer = false;  // a layer norm, whatever the model's norms are

  explicit operator bool() const { return bool{weight}; }
};

/// out = norm(x), of the kind that the family has. x [n, d] f32, out f32 or compute dtype; `out`
/// may be `x`.
void normalize(Backend& backend, const ModelSpec& spec, const Norm& norm, const Tensor& x,
               const Tensor& out);

}  // namespace snapkv
