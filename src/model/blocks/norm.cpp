// SPDX-License-Identifier: MIT
#include "model/blocks/norm.h"

#include "backend/ops.h"

namespace snapkv {

void normalize(Backend& backend, const ModelSpec& spec, const Norm& norm, const Tensor& x,
               const Tensor& out) {
  const float eps = norm.eps > 0 ? norm.eps : spec.config.norm_eps;
  if (spec.config.norm == NormKind::rms && !norm.is_layer) {
    ops::rms_norm(backend, x, norm.weight, eps, out);
  } else {
    ops::layer_norm(backend, x, norm.weight, norm.bias, eps, out);
  }
}

}  // namespace snapkv
