// SPDX-License-Identifier: MIT
#include "model/blocks/norm.h"

#include "backend/ops.h"

namespace snapkv {

void normalize(Backend& backend, const ModelSpec& spec, const Norm& norm, const Tensor& x,
               const Tensor& out) {
  if (spec.config.norm == NormKind::rms) {
    ops::rms_norm(backend, x, norm.weight, spec.config.norm_eps, out);
  } else {
    ops::layer_norm(backend, x, norm.weight, norm.bias, spec.config.norm_eps, out);
  }
}

}  // namespace snapkv
